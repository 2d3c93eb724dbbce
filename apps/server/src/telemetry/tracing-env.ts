import { z } from 'zod'

const url = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional()

/** Standard variables of OpenTelemetry that Atoll reads. */
export const TracingEnv = {
  OTEL_EXPORTER_OTLP_ENDPOINT: url.describe(
    'URL of an OpenTelemetry collector, which gets traces of API requests below /v1/traces, by HTTP in JSON. Default: no traces.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url.describe('The same, as the whole URL.'),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .optional()
    .describe('Headers for the collector: name=value, comma separated.'),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .enum(['http/json', 'http/protobuf'], { error: 'only HTTP is supported: set http/json' })
    .optional()
    .describe('Atoll sends JSON either way; collectors accept both on the same port.'),
  OTEL_SERVICE_NAME: z
    .string()
    .optional()
    .describe('Name of the service in traces. Default: atoll.'),
  OTEL_RESOURCE_ATTRIBUTES: z
    .string()
    .optional()
    .describe('More attributes of the service in traces: name=value, comma separated.'),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .default('parentbased_always_on')
    .describe('Which requests are traced.'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Share of traced requests, for the samplers with traceidratio.'),
  OTEL_SDK_DISABLED: z.string().optional().describe('true: no traces.'),
}

/**
 * Removes variables of OpenTelemetry that have no effect: empty ones, and all of them when traces are off. They may be
 * meant for other programs, and must not keep the server from starting.
 */
export function withoutUnusedTracing(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT } = env
  const hasEndpoint = Boolean(OTEL_EXPORTER_OTLP_ENDPOINT || OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)
  const isOff = !hasEndpoint || env['OTEL_SDK_DISABLED'] === 'true'
  const isUnused = ([name, value]: readonly [string, string | undefined]) =>
    name.startsWith('OTEL_') && (isOff || value === '')
  return Object.fromEntries(Object.entries(env).filter((variable) => !isUnused(variable)))
}
