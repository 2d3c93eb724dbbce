/** A server that is not certified for its name by anybody who may. The message is OpenSSL's name for what is wrong. */
export class UntrustedServer extends Error {
  override readonly name = 'UntrustedServer'
}
