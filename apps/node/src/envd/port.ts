/** Where every envd listens, in its own sandbox. */
export const envdPort = 49_983
