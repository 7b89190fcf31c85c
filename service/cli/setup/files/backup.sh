# A backup every hour, of which the last 72 are kept. As root, once the service runs by docsmith init --systemd:
#   docsmith init --systemd-backup | sh
# Then look:  systemctl start docsmith-backup && journalctl -u docsmith-backup -e;  systemctl list-timers
#
# A disk dies with all that is on it: have /var/lib/docsmith-backups copied to another place, by whatever you copy
# things with. Have /var/lib/docsmith-vault copied to yet another, but there keep no older version of it: anyone
# with an old vault and a backup can read what was erased since.
set -eu
cat > /etc/systemd/system/docsmith-backup.service <<'END'
[Unit]
Description=Backup of Docsmith
After=docsmith.service
# To be notified when it fails: OnFailure=NAME.service

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
