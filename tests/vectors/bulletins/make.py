#!/usr/bin/python3
"""Writes the made-up bulletins beside it. Run it after a change of the tables."""

import json
import pathlib
import re

HERE = pathlib.Path(__file__).parent


def product_id(*words):
    return re.sub(r"[^a-z0-9]+", "_", " ".join(words).lower()).strip("_")


def bulletin(number, date, title, flaws):
    """flaws: {cve: (score, severity, [(platform, product, affected, fixed)])}"""
    platforms = {}
    vulnerabilities = []
    for cve, (score, severity, rows) in flaws.items():
        status = {"known_affected": [], "fixed": []}
        for platform, product, affected, fixed in rows:
            for kind, text in (("known_affected", affected), ("fixed", fixed)):
                if text is None:
                    continue
                name = product_id(platform, product, text)
                entry = {"category": "product_version", "name": product,
                         "product": {"name": text, "product_id": name}}
                branch = platforms.setdefault(platform, [])
                if entry not in branch:
                    branch.append(entry)
                status[kind].append(name)
        vulnerabilities.append({
            "cve": cve,
            "notes": [{"category": "summary", "text": f"A made-up flaw of {title}."}],
            "product_status": {kind: ids for kind, ids in status.items() if ids},
            "scores": [{"cvss_v3": {"baseScore": score, "baseSeverity": severity,
                                    "vectorString": "CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H"},
                        "products": []}]})
    tree = [{"category": "architecture", "name": platform, "branches": entries}
            for platform, entries in platforms.items()]
    document = {"category": "csaf_security_advisory", "csaf_version": "2.0",
                "title": f"Made-up bulletin: {title}",
                "publisher": {"category": "other", "name": "tests",
                              "namespace": "https://example.org"},
                "tracking": {"id": number, "status": "final", "version": "1.0.0",
                             "initial_release_date": f"{date}T00:00:00Z",
                             "current_release_date": f"{date}T00:00:00Z", "revision_history": []}}
    text = json.dumps({"document": document,
                       "product_tree": {"branches": [{"category": "vendor", "name": "Made up",
                                                      "branches": tree}]},
                       "vulnerabilities": vulnerabilities}, indent=1)
    (HERE / "2030" / f"{number}.json").write_text(text + "\n")


def drivers(platform, branches, products=("GeForce", "Tesla")):
    return [(f"{platform}(R{branch})", product, f"All driver versions prior to {fix}", fix)
            for product in products for branch, fix in branches.items()]


bulletin("9001", "2030-02-01", "GPU Display Driver", {
    "CVE-2030-0001": (7.8, "HIGH",
                      drivers("Linux", {470: "470.900.02", 535: "535.900.05", 550: "550.900.07"}) +
                      drivers("Windows", {470: "474.90", 535: "538.90"}) +
                      [("Linux(R535 vGPU 16)", "Guest driver",
                        "535.890.05(All versions up to and including vGPU 16.8)",
                        "535.900.05(vGPU 16.9)"),
                       ("VMware vSphere, Red Hat Enterprise Linux KVM(R535 vGPU 16)",
                        "Virtual GPU Manager",
                        "535.890.04(All versions prior to and including vGPU software 16.8)",
                        "535.900.04(vGPU software 16.9)"),
                       ("Linux(R470 vGPU 13)", "Guest driver",
                        "470.890.01(All versions prior to and including vGPU 13.9)",
                        "470.900.02(vGPU 13.9)")]),
    # not listed for R535, which is in the bulletin
    "CVE-2030-0002": (5.5, "MEDIUM", drivers("Linux", {470: "470.900.02", 550: "550.900.07"})),
    # an old branch alone
    "CVE-2030-0003": (8.8, "HIGH", drivers("Linux", {470: "470.900.02"})),
    # Windows alone
    "CVE-2030-0004": (9.8, "CRITICAL", drivers("Windows", {535: "538.90"})),
    # editions that differ, and bounds that do
    "CVE-2030-0005": (6.1, "MEDIUM", [
        ("Linux(R550)", "GeForce", "All driver versions prior to 550.900.05", "550.900.05"),
        ("Linux(R550)", "Tesla", "All driver versions prior to 550.900.07", "550.900.07")]),
    "CVE-2030-0006": (6.1, "MEDIUM", [
        ("Windows(R470)", "Tesla", "All driver versions prior to 473.90", "474.90"),
        ("Windows(R590)", "GeForce", "All driver versions prior to 1.4.5.7", "1.4.5.7"),
        ("Windows(R570 vGPU 13)", "Guest driver",
         "474.80(All versions up to and including vGPU 13.8)", "474.90(vGPU 13.9)"),
        ("Windows(R450)", "vGPU software (guest driver)",
         "450.156.00(All versions prior to and including vGPU 11.6)", "450.172.01(vGPU 11.7)")]),
})

bulletin("9002", "2030-06-01", "GPU Display Driver", {
    # the same flaw again: the first fix of R470 was none
    "CVE-2030-0003": (8.8, "HIGH", drivers("Linux", {470: "470.950.01"})),
    "CVE-2030-0010": (7.8, "HIGH", drivers("Linux", {535: "535.950.01", 555: "555.50.02"})),
    "CVE-2030-0011": (7.8, "HIGH", [
        ("Linux(R535)", "Tesla", "All driver versions except 535.940.01", "535.950.01"),
        ("Linux(R555)", "Tesla", "All driver versions", "Available the week of June 29, 2030")]),
})

bulletin("9003", "2030-07-01", "tools", {
    "CVE-2030-0020": (9.0, "CRITICAL", [
        ("Linux", "NVIDIA Container Toolkit", "All versions up to and including v1.30.1", "v1.30.2"),
        ("Linux", "NVIDIA GPU Operator", "All versions up to and including 30.6.1", "v30.6.2")]),
    "CVE-2030-0021": (9.0, "CRITICAL", [
        ("All", "NVIDIA Container Toolkit",
         "All versions up to and including 1.31.7 (CDI mode only for versions prior to 1.31.5)",
         "1.31.8")]),
    "CVE-2030-0022": (6.5, "MEDIUM", [
        ("Linux(v22)", "NVIDIA Triton Inference Server", "22.09 to 30.03", "30.04")]),
    "CVE-2030-0023": (7.5, "HIGH", [
        ("Windows, Linux", "Triton Inference Server", "All versions prior to 2.40", "2.40")]),
    "CVE-2030-0024": (7.5, "HIGH", [
        ("Linux", "DCGM", "All versions prior to 4.3.4", "4.3.4 and 4.3.5 (latest)")]),
    "CVE-2030-0025": (4.4, "MEDIUM", [
        ("Windows, Linux", "NVIDIA CUDA Toolkit", "All versions prior to CUDA Toolkit v19.4",
         "CUDA Toolkit v19.4U1")]),
    "CVE-2030-0026": (8.8, "HIGH", [
        ("RHEL 8, RHEL 9", "UFM Enterprise GA", "6.15.x, 6.16.x, 6.17.x", "6.16.0-5, 6.18.0-5"),
        ("RHEL 8, RHEL 9", "UFM Enterprise LTS23", "6.15.x LTS prior to 6.15.6-4 LTS",
         "6.15.6-4 LTS")]),
    "CVE-2030-0027": (9.8, "CRITICAL", [
        ("DGX A100", "DGX A100", "All BMC versions prior to 00.22.05", "00.22.05")]),
    "CVE-2030-0028": (7.0, "HIGH", [
        ("DGX A100", "DGX A100", "All SBIOS versions prior to 1.25", "1.25")]),
    "CVE-2030-0029": (7.0, "HIGH", [
        ("N/A", "ConnectX GA", "All versions prior to xx.41.1000", "xx.41.1000 or later"),
        ("N/A", "BlueField 1", "All versions after 18.24.1000",
         "Contact your NVIDIA Customer Program Manager")]),
    "CVE-2030-0030": (4.4, "MEDIUM", [
        ("Linux", "NVIDIA Bright Cluster Manager", "Bright Cluster Manager 9.0-9.2",
         "Bright Cluster Manager 9.0-22, 9.1-19, 9.2-17"),
        ("Linux", "NVIDIA Base Command Manager", "Base Command Manager 3, Base Command Manager 10",
         "10.24.09a")]),
})
