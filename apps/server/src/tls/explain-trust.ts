import type { InstalledCa } from './set-up-local-ca.ts'

/** Explains how clients come to trust the local CA. */
export function explainTrust({ certificateFile, domain, hostName }: InstalledCa): string {
  const installed = `/usr/local/share/ca-certificates/${hostName}.crt`
  return `
Its certificate is ${certificateFile}
Copy it to each machine that uses this server. The key beside it must stay here.

Debian and its programs, such as curl and Python's ssl module (as root):
  install -m 644 ${certificateFile} ${installed}
  update-ca-certificates

Node.js, and so the E2B SDK for JavaScript:
  export NODE_EXTRA_CA_CERTS=${installed}

Python packages with a trust store of their own, such as the E2B SDK for Python:
  export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt

Browsers: import ${certificateFile} as an authority.
  Chrome and Chromium   chrome://certificate-manager, Custom, Trusted Certificates
  Firefox               about:preferences#privacy, View Certificates, Authorities

Start the server with ATOLL_DOMAIN=${domain} (restart it if it runs). Then, for the SDK:
  export E2B_DOMAIN=${domain}`
}
