"""What ``docsmith init`` prints for systemd about copies: one again and again, and one that follows."""

from pathlib import Path

from service.domain.errors import Invalid

DATA = Path("/var/lib/docsmith")
"""Where the service's own unit has it."""

BACKUP = """\
# A backup every hour, of which the last 72 are kept. As root, once the service runs by docsmith init --systemd:
#   docsmith init --systemd-backup | sh
# Then look:  systemctl start docsmith-backup && journalctl -u docsmith-backup -e;  systemctl list-timers
#
# A disk dies with all that is on it: have /var/lib/docsmith-backups copied to another place, by whatever you copy
# things with. Have /var/lib/docsmith-vault copied to yet another, but there keep no older version of it: whoever has
# an old vault and a backup can read what was erased since.
set -eu
cat > /etc/systemd/system/docsmith-backup.service <<'END'
[Unit]
Description=Backup of Docsmith
After=docsmith.service
# To be told when it fails: OnFailure=NAME.service

[Service]
Type=oneshot
ExecStart={program} backup /var/lib/docsmith-backups --keep 72 --vault /var/lib/docsmith-vault/vault.tar --data {data}
StateDirectory=docsmith-backups docsmith-vault
{common}
END
cat > /etc/systemd/system/docsmith-backup.timer <<'END'
[Unit]
Description=Backup of Docsmith, every hour

[Timer]
OnCalendar=hourly
RandomizedDelaySec=2m
# What was missed while the machine was off is made up for.
Persistent=true

[Install]
WantedBy=timers.target
END
systemctl daemon-reload
systemctl enable --now docsmith-backup.timer
"""

FOLLOW = """\
# /etc/systemd/system/docsmith-follow.service: systemctl daemon-reload && systemctl enable --now docsmith-follow
# A copy that is never much older than the service: of the log and the repositories in /var/lib/docsmith-follow, of the
# vault in /var/lib/docsmith-vault. Mount another disk at the first, and a third one at the second. After a loss:
#   docsmith restore /var/lib/docsmith-follow --vault /var/lib/docsmith-vault/vault.tar --data NEW
# It follows mistakes, too: keep backups beside it (docsmith init --systemd-backup).
[Unit]
Description=Docsmith's copy that follows
After=docsmith.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={program} backup /var/lib/docsmith-follow --follow --vault /var/lib/docsmith-vault/vault.tar --data {data}
Restart=always
RestartSec=10
# 3 says that the data folder has another log by now, or a damaged one: a new copy of it is somebody's decision.
RestartPreventExitStatus=3
StateDirectory=docsmith-follow docsmith-vault
{common}

[Install]
WantedBy=multi-user.target
"""

COMMON = """\
StateDirectoryMode=0700
ReadWritePaths={path}
# As the service does: the data is that user's alone.
User=docsmith
CacheDirectory=docsmith
UnsetEnvironment=CACHE_DIRECTORY
UMask=0077
Nice=10
IOSchedulingClass=idle

CapabilityBoundingSet=
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateNetwork=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native"""


def recipe(text: str, program: str, data: Path) -> str:
    """BACKUP or FOLLOW, for a program and a data folder.

    Raises Invalid: systemd cannot be told of such a folder.
    """
    if not str(data).isprintable():
        raise Invalid(f"{str(data)!r} cannot stand in a unit file.")
    words = {"program": _quoted(program, "$"), "data": _quoted(str(data), "$")}
    return text.format(common=COMMON.format(path=_quoted(str(data))), **words)


def _quoted(word: str, doubled: str = "") -> str:
    """A path, or with ``doubled`` a word of a command (systemd.syntax, "Quoting"; systemd.service, "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    for character in f"%{doubled}":
        escaped = escaped.replace(character, 2 * character)
    return f'"{escaped}"' if set(word) & set(" ';#\"\\") else escaped
