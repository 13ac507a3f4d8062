#!/bin/sh
# Runs one box until it is powered off, and again after each reboot.
# Usage: BOX_CGROUPS="FOLDER ..." supervise.sh ARGUMENT-OF-SYSTEMD-NSPAWN...
# Each boot gets a control group of its own, since a group that holds groups may hold no process.
set -u
rebooted=133 # what systemd-nspawn returns when the box asked for a reboot

for group in $BOX_CGROUPS; do
    mkdir -p "$group/supervisor"
    echo $$ >"$group/supervisor/cgroup.procs"
done

boot=0
while :; do
    boot=$((boot + 1))
    (
        for group in $BOX_CGROUPS; do
            mkdir -p "$group/boot-$boot"
            echo 0 >"$group/boot-$boot/cgroup.procs"
        done
        exec systemd-nspawn "$@"
    )
    status=$?
    [ "$status" -eq "$rebooted" ] || exit "$status"
done
