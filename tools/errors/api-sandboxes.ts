import type { EntryGroup } from './entry.ts'

export const apiSandboxErrors: EntryGroup = {
  area: 'api',
  title: 'Platform API: sandboxes, snapshots and networks',
  entries: {
    concurrent_sandboxes_exceeded: [
      'The team already has as many running sandboxes as its limit allows.',
      'Kill or pause a sandbox, or ask an operator to raise the limit.',
    ],
    disk_full: [
      'The disk of the node, or of the database, has too little space for the request; a pause or a snapshot leaves the sandbox as it was.',
      'Delete sandboxes, snapshots or build files, or ask the operator for more disk; waiting alone does not help.',
    ],
    envd_too_old: [
      'The envd of the sandbox is from a release that cannot be copied.',
      'Create a new sandbox, and take the snapshot or fork from that one.',
    ],
    file_not_changed: [
      'The sandbox has not changed this file: the file does not exist, or is the same as in the template.',
      'List the changed files (`GET /sandboxes/{sandboxID}/changes`), and read one of them.',
    ],
    inspection_failed: [
      'The node could not inspect the disk of the sandbox.',
      'Look into the server log, and report this.',
    ],
    inspection_refused: [
      'The path or the page token of a request for changed files is malformed.',
      'Send an absolute path without `..`, and the token of a page of the same path.',
    ],
    inspection_unavailable: [
      'Another operation on the sandbox interrupted the inspection, or the node already inspects many sandboxes.',
      'Retry.',
    ],
    invalid_count: [
      'A fork asks for at least as many sandboxes as the team may run.',
      'Send a smaller `count`; the original sandbox counts too.',
    ],
    invalid_lifecycle: [
      'The lifecycle options contradict each other, such as `autoPauseMemory: false` with `autoResume`.',
      'Change one of the options that the message names.',
    ],
    invalid_metadata_query: [
      'The query parameter `metadata` is not percent-encoded `key=value` pairs.',
      'Encode keys and values, and join the pairs with `&`.',
    ],
    invalid_network: [
      'A network setting is malformed, or contradicts another one; the message names the field.',
      'Correct that field.',
    ],
    invalid_timeout: [
      'The timeout is shorter than one second, or longer than sandboxes of the team may run.',
      'Send a timeout within the limit in the message.',
    ],
    kept_disk_exceeded: [
      'Templates, paused sandboxes and snapshots of the team use all disk space that the team may keep.',
      'Delete templates, paused sandboxes or snapshots, or ask an operator to raise the limit.',
    ],
    max_length_exceeded: [
      'The sandbox has run for as long as sandboxes of the team may run, so its timeout cannot be extended.',
      'Create a new sandbox, or pause and resume this one, which restarts the time.',
    ],
    memory_not_kept: [
      'The memory of the sandbox cannot be saved: the runtime is runc, a program holds a deleted file open, a connection is half-open, or the sandbox is stopped by a signal.',
      'Remove the cause that the message names, or pause with `memory: false` to keep the files only.',
    ],
    network_being_changed: [
      'Another request changes the network of the sandbox, and did not finish in time.',
      'Retry when that request has finished.',
    ],
    network_change_taken_back: [
      'Another server process undid the change of the network; the old rules apply.',
      'Send the change again.',
    ],
    network_refused: [
      'The node rejected the network rules, or the envd of the sandbox is too old for header rules.',
      'Correct the rule that the message names, or create a new sandbox.',
    ],
    network_unreadable: [
      'The proxy password or a header value of the sandbox cannot be decrypted.',
      'Restore the encryption key, or set the network rules again with `PUT /sandboxes/{sandboxID}/network`.',
    ],
    network_update_failed: [
      'The node failed to apply the network rules; the old rules stay in the record.',
      'Retry, and report the time to the operator if it fails again; the server log has the cause.',
    ],
    node_busy: [
      'The node cannot do this now, such as while the sandbox is still frozen from its last copy.',
      'Retry after a moment.',
    ],
    node_changed: [
      'The node has restarted, or another node answers at its address. Nothing was changed.',
      'Retry after a moment.',
    ],
    node_unsuitable: [
      'The memory of the paused sandbox needs a CPU or a runtime that the other nodes lack.',
      'Send `memory: false` to boot from the files, or wait for the node that paused it.',
    ],
    objects_unavailable: [
      'What the sandbox needs is in the object store, which does not answer. Or a node is forgotten, and the store cannot be asked what it has of the node.',
      'Try again later. If the message names an object that cannot be read, restore or remove it first.',
    ],
    sandbox_content_missing: [
      'The node of the paused sandbox does not answer, and the object store does not have its newest content.',
      'Try again when the node is back; an operator can restore the object.',
    ],
    sandbox_content_conflict: [
      'A node has content of the paused sandbox that is not older than the content that the database names.',
      'Ask the operator: the database may be an older copy.',
    ],
    node_unavailable: [
      'The node does not answer; a resume may or may not have started the sandbox.',
      'Retry with backoff; after a resume, check `GET /sandboxes/{sandboxID}` first.',
    ],
    ready_name_gone: [
      'Another create took the pre-warmed sandbox; the server then uses another one, so clients never get this.',
      'Nothing.',
    ],
    record_unreadable: [
      'The record of the sandbox or snapshot on the node is damaged, or a newer release wrote it; the data is kept.',
      'Ask the operator, who finds the cause with `atoll doctor`.',
    ],
    sandbox_capacity_unavailable: [
      'The node has no memory, address or start slot left, or an operator drains it.',
      'Kill or pause sandboxes, or retry with backoff.',
    ],
    sandbox_create_failed: [
      'The node failed to start the sandbox, or the sandbox ended during its start.',
      'Retry once; then report the time to the operator, since the server log has the cause.',
    ],
    sandbox_create_given_up: [
      'The client disconnected, or the server is shutting down; no sandbox was created.',
      'Send the create again.',
    ],
    sandbox_evicted: [
      'The files of the paused sandbox are in the object store only.',
      'Resume the sandbox, then retry.',
    ],
    sandbox_filesystem_boot_unconfirmed: [
      'The node stopped answering while the sandbox booted from its files, so its state is unknown.',
      'Check `GET /sandboxes/{sandboxID}`, then connect again.',
    ],
    sandbox_in_transition: [
      'The sandbox is being paused, resumed or copied.',
      'Retry when that has finished, usually within seconds.',
    ],
    sandbox_killing: [
      'The sandbox is being killed.',
      'Create a new sandbox; this one cannot be kept.',
    ],
    sandbox_memory_lost: [
      'The node cannot read the saved memory, because another runtime or another release of gVisor wrote it; the sandbox stays paused.',
      'Connect with `memory: false` to boot from the files, or ask the operator for the old runtime.',
    ],
    sandbox_not_found: [
      'The team has no such sandbox, or the sandbox has ended; the message says why if Atoll knows.',
      'Check the ID with `GET /v2/sandboxes`, or create a new sandbox.',
    ],
    sandbox_pause_failed: [
      'The node failed to pause the sandbox.',
      'Check its state, retry once, and then report the time to the operator; the server log has the cause.',
    ],
    sandbox_paused: [
      'The sandbox is paused; a pause gets 409, and requests that need a running sandbox get 404 or 409.',
      'Resume the sandbox with `POST /sandboxes/{sandboxID}/connect`; for a pause, nothing is left to do.',
    ],
    sandbox_placement_timeout: [
      'The sandbox did not start within the time limit in the message.',
      'Retry with backoff; check the start command of the template if this happens only with one template.',
    ],
    sandbox_resume_failed: [
      'The node failed to resume the sandbox, which stays paused.',
      'Retry once, then connect with `memory: false`, or report the time to the operator.',
    ],
    sandbox_running: [
      'The sandbox to resume already runs.',
      'Use the sandbox; `POST /sandboxes/{sandboxID}/connect` accepts running sandboxes too.',
    ],
    sandbox_snapshot_failed: [
      'The node failed to copy the sandbox.',
      'Retry once, and then report the time to the operator; the server log has the cause.',
    ],
    sandbox_start_in_flight: [
      'The sandbox is already being resumed with its memory, so `memory: false` cannot apply.',
      'Wait for that resume, or pause the sandbox and connect again.',
    ],
    sandbox_state: [
      'The sandbox changed its state during the request, so the next state is not possible any more.',
      'Read the state with `GET /sandboxes/{sandboxID}` and decide again.',
    ],
    sandbox_superseded: [
      'The sandbox was started again, by another server, since this request was made.',
      'Read its state and retry.',
    ],
    snapshot_unreadable: [
      'The node cannot use the snapshot, because another runtime or another release of gVisor wrote it.',
      'Take a new snapshot, or ask the operator for the runtime that the message names.',
    ],
    templates_differ: [
      'Two sandboxes that were not made from the same template build cannot be compared: changes are known since the template only.',
      'Compare forks, or sandboxes that were created from the same template or its snapshots.',
    ],
    too_many_changes: [
      'One of two compared sandboxes has changed more files than a comparison reads.',
      'Compare a smaller directory, with the query parameter `path`.',
    ],
  },
}
