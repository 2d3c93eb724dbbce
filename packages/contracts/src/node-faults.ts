/** Header with the reason of a node's fault, since several reasons share one Connect code. */
export const reasonHeader = 'atoll-reason'
