import type { NewSandboxV2 } from '@atoll/contracts/sandbox-create'
import { Fault } from '@atoll/kit/fault'

/** What cannot be honoured yet is refused: a sandbox without the wanted restriction would be a trap. */
export function refuseUnsupported(body: NewSandboxV2): void {
  const { network = {} } = body
  const asked: Readonly<Record<string, boolean | undefined>> = {
    'allow_internet_access: false': body.allow_internet_access === false,
    'network.allowPublicTraffic: false': network.allowPublicTraffic === false,
    'network.allowOut': isFilled(network.allowOut),
    'network.denyOut': isFilled(network.denyOut),
    'network.egressProxy': Boolean(network.egressProxy),
    'network.maskRequestHost': network.maskRequestHost !== undefined,
    'network.rules': isFilled(network.rules),
    'network.httpsPorts': isFilled(network.httpsPorts),
    'iam.tokens': isFilled(body.iam?.tokens),
    volumeMounts: isFilled(body.volumeMounts),
  }
  const fields = Object.keys(asked).filter((field) => asked[field])
  if (fields.length === 0) return
  throw new Fault(
    'invalid',
    'not_supported_yet',
    `Not supported yet: ${fields.join(', ')}. Leave ${fields.length === 1 ? 'it' : 'them'} out`,
  )
}

function isFilled(value: object | undefined): boolean {
  return value !== undefined && Object.keys(value).length > 0
}
