/** Header with the reason of a node's fault, since several reasons share one Connect code. */
export const reasonHeader = 'atoll-reason'

/** Headers that name the node a call is meant for. Another node, or this one after a restart, refuses the call. */
export const nodeHeader = 'atoll-node'
export const epochHeader = 'atoll-epoch'

/** Reasons of calls that a node refuses because the caller's knowledge is out of date. */
export const staleGeneration = 'stale_generation'
export const wrongNode = 'wrong_node'
export const wrongEpoch = 'wrong_epoch'
