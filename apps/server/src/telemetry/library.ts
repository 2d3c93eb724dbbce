/** Classes of `prom-client`, which is loaded only if metrics are on. */
export type Library = Pick<typeof import('prom-client'), 'Counter' | 'Gauge' | 'Histogram'>
