"""Packs one program file as a wheel, npm packages, a Debian package and a tarball.

Uses nothing but Python's standard library, and the program itself for its man pages and completions.
The same input gives the same bytes: every time is SOURCE_DATE_EPOCH.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import time
import zipfile

NAME = "countersign"
SUMMARY = "The gate between AI agents and their tools"
LICENCE = "MIT OR Apache-2.0"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

# The machine numbers of ELF, with what each package format calls them.
MACHINES = {
    62: {"wheel": "x86_64", "npm": "x64", "debian": "amd64"},
    183: {"wheel": "aarch64", "npm": "arm64", "debian": "arm64"},
}
PT_INTERP = 3
# The oldest C library that installers of wheels still ask for by number.
OLDEST_GLIBC = 17
# Reads packed relocations (crates/countersign/build.rs).
FIRST_GLIBC_WITH_RELR = 36


class Program:
    """The file to pack: its bytes, its machine, and what it says about itself."""

    def __init__(self, path):
        self.path = path
        self.bytes = path.read_bytes()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            sys.exit(f"pack.py: {path} is not a 64-bit program for Linux")
        (machine,) = struct.unpack_from("<H", self.bytes, 18)
        if machine not in MACHINES:
            sys.exit(f"pack.py: {path} is for a machine that is not packed (ELF number {machine})")
        self.machine = MACHINES[machine]
        self.static = not self.has_interpreter()
        minors = [int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", self.bytes)]
        if b"\0GLIBC_ABI_DT_RELR\0" in self.bytes:
            minors.append(FIRST_GLIBC_WITH_RELR)
        self.glibc = max(minors, default=OLDEST_GLIBC)
        self.version = self.say("--version").split()[1]

    def has_interpreter(self):
        (offset,) = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        kinds = (struct.unpack_from("<I", self.bytes, offset + size * at)[0] for at in range(count))
        return PT_INTERP in kinds

    def say(self, *arguments):
        return subprocess.run(
            [self.path, *arguments], check=True, capture_output=True, text=True
        ).stdout

    def commands(self):
        listed = self.say("--help").split("Commands:\n", 1)[1].split("\n\n", 1)[0]
        return [name for name in re.findall(r"^  ([a-z]\S*)", listed, re.M) if name != "help"]

    def manual(self):
        """Section 1 of the manual: the program's page and one for each command."""
        pages = {f"{NAME}.1": self.say("man")}
        pages |= {f"{NAME}-{name}.1": self.say("man", name) for name in self.commands()}
        return pages

    def wheel_tags(self):
        machine = self.machine["wheel"]
        if self.static:
            return [f"manylinux_2_{OLDEST_GLIBC}_{machine}", f"musllinux_1_1_{machine}"]
        return [f"manylinux_2_{max(self.glibc, OLDEST_GLIBC)}_{machine}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--sbom", type=pathlib.Path, help="bill of materials to put in")
    parser.add_argument("--level", type=int, default=9, help="compression, 0 to 9")
    options = parser.parse_args()
    program = Program(options.program.resolve())
    sbom = options.sbom.read_bytes() if options.sbom else None
    options.out.mkdir(parents=True, exist_ok=True)
    packer = Packer(program, options.out, sbom, options.level)
    for made in [packer.wheel(), packer.npm_binary(), packer.debian(), packer.tarball()]:
        print(made)
    print(packer.npm())
    print(checksums(options.out))


class Packer:
    """Writes each package of one program into one folder."""

    def __init__(self, program, out, sbom, level):
        self.program = program
        self.out = out
        self.sbom = sbom
        self.level = level
        self.time = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
        self.licences = {
            name: (ROOT / name).read_bytes() for name in ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE"]
        }

    def wheel(self):
        program = self.program
        tags = program.wheel_tags()
        info = f"{NAME}-{program.version}.dist-info"
        metadata = (
            f"Metadata-Version: 2.4\nName: {NAME}\nVersion: {program.version}\n"
            f"Summary: {SUMMARY}\nLicense-Expression: {LICENCE}\n"
            + "".join(f"License-File: {name}\n" for name in self.licences)
            + "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
        ).encode() + (HERE / "about.md").read_bytes()
        files = {
            f"{NAME}-{program.version}.data/scripts/{NAME}": program.bytes,
            f"{info}/METADATA": metadata,
            f"{info}/WHEEL": (
                "Wheel-Version: 1.0\nGenerator: countersign\nRoot-Is-Purelib: false\n"
                + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
            ).encode(),
        }
        files |= {f"{info}/licenses/{name}": text for name, text in self.licences.items()}
        if self.sbom:
            files[f"{info}/sboms/{NAME}.cdx.json"] = self.sbom
        record = "".join(
            f"{name},sha256={urlsafe(content)},{len(content)}\n" for name, content in files.items()
        )
        files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
        path = self.out / f"{NAME}-{program.version}-py3-none-{'.'.join(tags)}.whl"
        date = max(time.gmtime(self.time)[:6], (1980, 1, 1, 0, 0, 0))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=self.level) as archive:
            for name, content in files.items():
                entry = zipfile.ZipInfo(name, date)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
                archive.writestr(entry, content, compresslevel=self.level)
        return path

    def npm_binary(self):
        """The npm package of this machine, which the one that people name depends on."""
        cpu = self.program.machine["npm"]
        about = {
            "name": f"{NAME}-linux-{cpu}",
            "version": self.program.version,
            "description": f"{SUMMARY}: the program for Linux on {cpu}",
            "license": LICENCE,
            "os": ["linux"],
            "cpu": [cpu],
            "files": ["countersign"],
        }
        if not self.program.static:
            about["libc"] = ["glibc"]
        files = {f"package/{name}": (text, 0o644) for name, text in self.licences.items()}
        files |= {
            "package/package.json": (as_json(about), 0o644),
            "package/countersign": (self.program.bytes, 0o755),
        }
        path = self.out / f"{about['name']}-{self.program.version}.tgz"
        path.write_bytes(self.tar_gz(files))
        return path

    def npm(self):
        """The npm package that people name, for every machine whose package is in the folder."""
        version = self.program.version
        machines = sorted(
            path.name.removesuffix(f"-{version}.tgz")
            for path in self.out.glob(f"{NAME}-linux-*-{version}.tgz")
        )
        about = {
            "name": NAME,
            "version": version,
            "description": SUMMARY,
            "license": LICENCE,
            "bin": {NAME: "start.js"},
            "files": ["start.js"],
            "engines": {"node": ">=18"},
            "optionalDependencies": {name: version for name in machines},
        }
        files = {f"package/{name}": (text, 0o644) for name, text in self.licences.items()}
        files |= {
            "package/package.json": (as_json(about), 0o644),
            "package/start.js": ((HERE / "start.js").read_bytes(), 0o755),
            "package/README.md": ((HERE / "about.md").read_bytes(), 0o644),
        }
        path = self.out / f"{NAME}-{version}.tgz"
        path.write_bytes(self.tar_gz(files))
        return path

    def debian(self):
        program = self.program
        files = self.installed("usr/")
        files["usr/lib/systemd/user/countersign.service"] = self.unit("user")
        files["usr/lib/systemd/system/countersign.service"] = self.unit("system")
        files["usr/lib/sysusers.d/countersign.conf"] = (
            (HERE / "systemd/sysusers.conf").read_bytes(),
            0o644,
        )
        files["etc/countersign/config.json"] = ((HERE / "config.json").read_bytes(), 0o644)
        sizes = sum(len(content) for content, _ in files.values())
        depends = "" if program.static else f"Depends: libc6 (>= 2.{program.glibc})\n"
        control = (
            f"Package: {NAME}\nVersion: {program.version}\n"
            f"Architecture: {program.machine['debian']}\nMaintainer: Countersign <maintainers@countersign.invalid>\n"
            f"Installed-Size: {sizes // 1024 + 1}\n{depends}Section: utils\nPriority: optional\n"
            f"Description: {SUMMARY}\n"
            " An agent states what each call is for. Countersign checks that against the tool and\n"
            " your rules, forwards the call, and leaves a signed receipt.\n"
        ).encode()
        sums = "".join(
            f"{hashlib.md5(content).hexdigest()}  {name}\n"
            for name, (content, _) in files.items()
            if not name.startswith("etc/")
        ).encode()
        script = (HERE / "systemd/postinst").read_bytes()
        controls = {
            "./control": (control, 0o644),
            "./md5sums": (sums, 0o644),
            "./conffiles": (b"/etc/countersign/config.json\n", 0o644),
            "./postinst": (script, 0o755),
        }
        path = self.out / f"{NAME}_{program.version}_{program.machine['debian']}.deb"
        members = [
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", self.tar_gz(controls)),
            ("data.tar.gz", self.tar_gz({f"./{name}": entry for name, entry in files.items()})),
        ]
        path.write_bytes(b"!<arch>\n" + b"".join(self.ar_member(*member) for member in members))
        return path

    def tarball(self):
        top = f"{NAME}-{self.program.version}-linux-{self.program.machine['wheel']}"
        files = {f"{top}/{name}": entry for name, entry in self.installed("").items()}
        for kind in ["user", "system"]:
            files[f"{top}/lib/systemd/{kind}/countersign.service"] = self.unit(kind)
        files[f"{top}/README.md"] = ((HERE / "about.md").read_bytes(), 0o644)
        path = self.out / f"{top}.tar.gz"
        path.write_bytes(self.tar_gz(files))
        return path

    def installed(self, prefix):
        """The files that every system puts in the same places below a prefix."""
        program = self.program
        files = {f"{prefix}bin/{NAME}": (program.bytes, 0o755)}
        for name, page in program.manual().items():
            packed = gzip.compress(page.encode(), self.level, mtime=0)
            files[f"{prefix}share/man/man1/{name}.gz"] = (packed, 0o644)
        for shell, place in {
            "bash": f"bash-completion/completions/{NAME}",
            "zsh": f"zsh/vendor-completions/_{NAME}",
            "fish": f"fish/vendor_completions.d/{NAME}.fish",
        }.items():
            script = program.say("completions", shell).encode()
            files[f"{prefix}share/{place}"] = (script, 0o644)
        docs = f"{prefix}share/doc/{NAME}"
        files[f"{docs}/copyright"] = (b"\n".join(self.licences.values()), 0o644)
        if self.sbom:
            files[f"{docs}/{NAME}.cdx.json"] = (self.sbom, 0o644)
        return files

    def unit(self, kind):
        return ((HERE / f"systemd/{kind}.service").read_bytes(), 0o644)

    def tar_gz(self, files):
        """An archive of name -> (content, mode), with the folders that the names need."""
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            folders = set()
            for name, (content, mode) in files.items():
                for folder in reversed(pathlib.PurePosixPath(name).parents):
                    if str(folder) not in folders | {"."}:
                        folders.add(str(folder))
                        entry = tarfile.TarInfo(("./" if name.startswith("./") else "") + str(folder))
                        entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, self.time
                        archive.addfile(entry)
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(content), mode, self.time
                archive.addfile(entry, io.BytesIO(content))
        return gzip.compress(plain.getvalue(), self.level, mtime=0)

    def ar_member(self, name, content):
        head = f"{name:<16}{self.time:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        return head + content + b"\n" * (len(content) % 2)


def checksums(out):
    """Lists every package in the folder, in the form that `sha256sum --check` reads."""
    listed = sorted(path for path in out.iterdir() if path.suffix in {".whl", ".tgz", ".deb", ".gz"})
    path = out / "SHA256SUMS"
    path.write_text(
        "".join(f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in listed)
    )
    return path


def urlsafe(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def as_json(value):
    return (json.dumps(value, indent=2) + "\n").encode()


if __name__ == "__main__":
    main()
