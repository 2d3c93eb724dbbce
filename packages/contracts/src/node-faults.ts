/** Carries the reason of a node's fault, where its code stands for several. */
export const reasonHeader = 'atoll-reason'
