/** Port of envd inside every sandbox. */
export const envdPort = 49_983
