import type { EntryGroup } from './entry.ts'

export const nodeErrors: EntryGroup = {
  area: 'node',
  title: 'Node',
  intro: `Faults between the server and its node, for operators. Clients get the platform API's own reason instead; the server log has
both. The reason travels in the header \`atoll-reason\`.`,
  entries: {
    apt_sources: [
      'The apt sources of the machine name no Debian mirror, so a template cannot be installed.',
      'Add a mirror to the apt sources.',
    ],
    bad_hash: [
      'The hash of build files is not 64 hexadecimal digits; clients get `build_files_refused`.',
      'Correct the client.',
    ],
    bad_id: [
      'An ID does not have the form of IDs of this node.',
      'Report this: the API checks IDs before.',
    ],
    bad_limits: [
      'A sandbox has less than 1 CPU, 128 MB of memory or 16 MB of disk.',
      'Raise the size of the template or of `base`.',
    ],
    bad_network_rule: [
      'A network rule is malformed; clients get `network_refused`.',
      'Correct the rule that the message names.',
    ],
    bad_owner: [
      'The owner of build files is malformed.',
      'Report this: the API sends the ID of the team.',
    ],
    bad_page: [
      'The token of a page of changed files belongs to another path; clients get `inspection_refused`.',
      'Correct the client.',
    ],
    bad_path: [
      'The path of a changed file is malformed; clients get `inspection_refused`.',
      'Correct the client.',
    ],
    bad_upload: [
      'An upload of build files has no head.',
      'Report this: server and node are of different releases.',
    ],
    base_template: [
      '`mmdebstrap` could not build a template; clients get `install_failed`.',
      'Check the network and the Debian mirror, then install again.',
    ],
    connection_opens: [
      'A half-open connection prevents a checkpoint; clients get `memory_not_kept`.',
      'Wait until the program gives up, or pause without memory.',
    ],
    deleted_file_open: [
      'A program holds a deleted file open, which prevents a checkpoint; clients get `memory_not_kept`.',
      'End the program, or pause without memory.',
    ],
    disk_full: [
      'The machine lacks disk space or inodes, or `ATOLL_DISK_OVERCOMMIT` is reached.',
      'Delete sandboxes or snapshots, add disk, or change the setting in the message.',
    ],
    envd_refused: [
      'The envd of a sandbox rejected its settings.',
      'Read the log of the sandbox; a template may have damaged envd.',
    ],
    envd_too_old: [
      'The envd of a sandbox is too old for header rules; clients get `network_refused`.',
      'Create a new sandbox.',
    ],
    envd_unusable: [
      'The envd of a sandbox does not give its log; the node tries again.',
      'Check whether the sandbox is out of memory or hung.',
    ],
    content_not_older: [
      'A node was asked to fetch content of a paused sandbox, and has newer content, or content of an unknown age; clients get `sandbox_content_conflict`.',
      'Check whether the database was restored from an older backup.',
    ],
    id_taken: [
      'A sandbox or snapshot with this ID already exists on the node.',
      'Report this: IDs are random.',
    ],
    inspection_interrupted: [
      'Another operation on a sandbox ended an inspection of its disk; clients get `inspection_unavailable`.',
      'Nothing: clients retry.',
    ],
    inspections_busy: [
      '64 inspections of disks wait, or 4 of the same sandbox; clients get `inspection_unavailable`.',
      'Find out which client asks so often.',
    ],
    internal: [
      'The node met an unexpected error, which is in the server log.',
      'Read the log, and report the error.',
    ],
    memory_not_kept: ['The runtime cannot save memory.', 'Pause without memory, or use gVisor.'],
    memory_unreadable: [
      'Another release of gVisor wrote the memory; clients get `sandbox_memory_lost` or `snapshot_unreadable`.',
      'Set `ATOLL_RUNSC` to that release, or boot from the files.',
    ],
    mounts_left: [
      'An abandoned build still has mounts, so its folder cannot be deleted.',
      'Unmount what the message names, then start again.',
    ],
    name_gone: [
      'The pre-warmed sandbox with this identity was taken; the server uses another one.',
      'Nothing.',
    ],
    name_says_more: [
      'A create for a pre-warmed sandbox has options that such a sandbox cannot take.',
      'Report this: the API does not send them.',
    ],
    no_address: [
      'All addresses of `ATOLL_SUBNET` are in use; clients get `sandbox_capacity_unavailable`.',
      'End sandboxes, or set a larger subnet.',
    ],
    no_room: [
      'The machine lacks memory, or too many sandboxes start at once; clients get `sandbox_capacity_unavailable`.',
      'End sandboxes, or add memory.',
    ],
    not_in_catalogue: [
      'The node has no such template in its catalogue.',
      'Report this: server and node are of different releases.',
    ],
    node_unsuitable: [
      'Saved memory needs CPU features, or an architecture, that this node lacks.',
      'Resume on a node with the CPU of the one that saved it, or boot from the files.',
    ],
    not_named: [
      'The server withdrew an identity that it offered for a pre-warmed sandbox.',
      'Nothing.',
    ],
    not_ready: [
      'The ready command of the template did not succeed within its time limit.',
      'Correct the start or ready command of the template.',
    ],
    object_conflict: [
      'Another node uploaded the same content of a sandbox: this node runs on a copy or an old backup of its data.',
      'Stop the node, and start the one with the newer data.',
    ],
    object_damaged: [
      'An object is not what its manifest promises. It is not used.',
      'Restore the object from a backup of the bucket.',
    ],
    object_expiring: [
      'An upload needs a layer that the object store is about to remove, since nothing needed it for a week.',
      'Nothing: after the removal, within some hours, the layer is uploaded again.',
    ],
    object_missing: [
      'The object store lacks what a node wants to fetch.',
      'Start the node that has it; restore the object if the bucket lost it.',
    ],
    object_unreadable: [
      'A newer release wrote the objects. Or the store is asked what a forgotten node has uploaded, and an object is damaged or its key is missing.',
      'Upgrade the node, restore the key, or restore or remove the object.',
    ],
    objects_disabled: [
      'The node has no object store, so it cannot fetch anything.',
      'Set `ATOLL_S3_BUCKET` and the settings beside it on all nodes.',
    ],
    objects_unavailable: [
      'The object store does not answer, or refuses the request; uploads are tried again.',
      'Check the store, `ATOLL_S3_ENDPOINT`, the bucket and the access key.',
    ],
    other_runtime: [
      'Another runtime made the sandbox or snapshot; clients get `sandbox_memory_lost` or `snapshot_unreadable`.',
      'Start the node with the `ATOLL_RUNTIME` in the message.',
    ],
    record_unreadable: [
      'The record is quarantined: damaged, or of a newer release.',
      'Run `atoll doctor`, which names the record.',
    ],
    runtime_failed: [
      'runsc or runc failed; the message has its output.',
      'Read the message; `atoll doctor` checks the runtime.',
    ],
    sandbox_died: [
      'The sandbox ended before its envd answered.',
      'Check memory of the machine and the template; the server log has more.',
    ],
    sandbox_evicted: [
      'The files of the paused sandbox are in the object store only.',
      'Nothing: the server has a node fetch them when the sandbox is resumed.',
    ],
    sandbox_not_found: [
      'The node does not run this sandbox.',
      'Nothing: the server settles the record.',
    ],
    sandbox_stands_still: [
      'The sandbox is still frozen from its last copy; clients get `node_busy`.',
      'Wait; the node thaws the sandbox again.',
    ],
    sandbox_stopped: [
      'The process of the sandbox is stopped by SIGSTOP; clients get `memory_not_kept`.',
      'Continue the process with SIGCONT.',
    ],
    snapshot_not_found: [
      'The node has no such snapshot; clients get `sandbox_create_failed`.',
      'Check whether the data directory was restored from an older copy.',
    ],
    snapshot_size_differs: [
      'A create from a snapshot asks for another template or size than the snapshot has.',
      'Report this: the API sends the size of the snapshot.',
    ],
    stale_generation: [
      'A call is for a sandbox before its last start; clients get `sandbox_superseded`.',
      'Nothing: the caller was too slow, or had been replaced.',
    ],
    template_exists: [
      'A build has the ID of a template that exists or is being built.',
      'Report this: IDs are random.',
    ],
    template_not_found: [
      'The node has no files of this template; clients get `sandbox_create_failed`.',
      'Check whether the data directory was restored from an older copy; build the template again.',
    ],
    too_many_files: [
      'The team keeps too many files for builds; clients get `disk_full`.',
      'Wait: files go a day after their last use.',
    ],
    too_many_ids: [
      'A request for last lines names more than 100 sandboxes, or one for stored contents more than 200.',
      'Report this: the API checks the number before.',
    ],
    wait_timeout: [
      'A program or a mount of the machine did not finish in time.',
      'Read the server log; the machine may be overloaded.',
    ],
    wrong_epoch: [
      'A call is for this node before its last start; clients get `node_changed`.',
      'Nothing: the API asks the node again.',
    ],
    wrong_node: [
      'A call is for another node; clients get `node_changed`.',
      'Check the addresses of the nodes.',
    ],
  },
}
