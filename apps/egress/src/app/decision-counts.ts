/** Counts of what the proxy decided since its start. */
export interface DecisionCounts {
  connectionsAllowed: number
  connectionsRefused: number
  /** Allowed, but the server or proxy could not be reached. */
  connectionsFailed: number
  namesAllowed: number
  namesRefused: number
}

export function createDecisionCounts(): DecisionCounts {
  return {
    connectionsAllowed: 0,
    connectionsRefused: 0,
    connectionsFailed: 0,
    namesAllowed: 0,
    namesRefused: 0,
  }
}
