/** The upstream server has no valid certificate for its name. The message is OpenSSL's error code. */
export class UpstreamCertificateError extends Error {
  override readonly name = 'UpstreamCertificateError'
}
