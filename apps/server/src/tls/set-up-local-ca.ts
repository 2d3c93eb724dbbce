import { parseEnvironment } from '@atoll/kit/config'
import { isDomainName } from '@atoll/kit/domain-name'
import { Fault } from '@atoll/kit/fault'
import { ServerEnv } from '../config.ts'
import { createLocalCa, localCaFiles, readLocalCa, saveLocalCa } from './local-ca.ts'
import { localCertificates } from './local-certificates.ts'
import { parseDomain } from './tls-plan.ts'

const Settings = ServerEnv.pick({ ATOLL_DOMAIN: true, ATOLL_DATA_DIR: true })

export interface InstalledCa {
  /** ATOLL_DOMAIN without a port. */
  readonly hostName: string
  /** ATOLL_DOMAIN. */
  readonly domain: string
  /** Certificate of the CA, for clients. */
  readonly certificateFile: string
}

/** Creates the local CA of an installation. Leaves one that is there as it is, unless `replace` is set. */
export async function setUpLocalCa(
  env: Record<string, string | undefined>,
  { replace, now = new Date() }: { readonly replace: boolean; readonly now?: Date },
): Promise<InstalledCa & { readonly isNew: boolean }> {
  const { ATOLL_DOMAIN: domain, ATOLL_DATA_DIR: dataDir } = parseEnvironment(Settings, env)
  if (domain === undefined) {
    throw invalid('A local CA needs a domain: set ATOLL_DOMAIN, for example atoll.localhost:8443')
  }
  const { hostName } = parseDomain(domain)
  if (!isDomainName(hostName)) {
    throw invalid(
      `ATOLL_DOMAIN must have a dot, such as atoll.localhost: clients refuse certificates for *.${hostName}`,
    )
  }
  const existing = replace ? undefined : await readLocalCa(dataDir)
  if (existing && existing.domain !== hostName) {
    throw invalid(
      `There is a local CA for ${existing.domain} in ${dataDir}. To create one for ${hostName} in its place, add --replace`,
    )
  }
  // Also completes what an interrupted run left.
  await saveLocalCa(dataDir, existing ?? createLocalCa(hostName, now))
  await localCertificates(dataDir, hostName).load()
  const certificateFile = localCaFiles(dataDir).certificate
  return { domain, hostName, certificateFile, isNew: !existing }
}

function invalid(message: string): Fault {
  return new Fault('invalid', 'configuration_refused', message)
}
