#!/bin/bash
# cluster.sh - a small Slurm cluster on this machine: munge with a socket of its own, slurmctld, two nodes that are slurmd
# processes of this host. Needs root and Debian's slurm-wlm and munge.
#
#   cluster.sh start FOLDER    leaves FOLDER/slurm.conf: export SLURM_CONF=FOLDER/slurm.conf
#   cluster.sh stop FOLDER
set -euo pipefail

CPUS=${CPUS:-2}   # of each node
GRACE=${GRACE:-0} # seconds that a job of partition `all` has left when one of partition `urgent` wants its nodes

configure() {
  local host
  host=$(hostname -s)
  mkdir -p "$1"/{munge,state,log,spool-n1,spool-n2,tmp-n1,tmp-n2}
  chmod 755 "$1" "$1/munge"
  cat >"$1/slurm.conf" <<EOF
ClusterName=small
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$1/munge/socket
CredType=cred/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool-%n
TmpFS=$1/tmp-%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd-%n.pid
SlurmctldLogFile=$1/log/slurmctld
SlurmdLogFile=$1/log/slurmd-%n
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=10
OverTimeLimit=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=16821 CPUs=$CPUS State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=16822 CPUs=$CPUS State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=$GRACE
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
EOF
}

start() {
  [ "$(id -u)" = 0 ] || { echo "cluster.sh: needs root" >&2; exit 1; }
  configure "$1"
  export SLURM_CONF=$1/slurm.conf
  dd if=/dev/urandom of="$1/munge/key" bs=128 count=1 status=none
  chmod 600 "$1/munge/key"
  munged --force --key-file="$1/munge/key" --socket="$1/munge/socket" --pid-file="$1/munge/pid" \
    --log-file="$1/munge/log" --seed-file="$1/munge/seed"
  slurmctld
  slurmd -N n1
  slurmd -N n2
  for _ in $(seq 100); do
    [ "$(sinfo -h -t idle -o %D)" = 2 ] && return
    sleep 0.2
  done
  sinfo >&2
  echo "cluster.sh: the nodes did not come up" >&2
  exit 1
}

stop() {
  local file pid
  for file in "$1"/slurmd-*.pid "$1"/slurmctld.pid "$1"/munge/pid; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  done
}

case "${1:-} ${2:-}" in
"start /"*) start "$2" ;;
"stop /"*) stop "$2" ;;
*) sed -n '2,7p' "$0"; exit 2 ;;
esac
