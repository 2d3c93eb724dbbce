/** Parser for `/etc/os-release`. Plain JavaScript: set-up runs it before anything is installed. */

/**
 * @typedef {object} OsRelease
 * @property {string} name display name
 * @property {string} codename empty when the release has none
 * @property {'debian' | 'derivative' | 'other'} family
 */

/**
 * @param {string} text
 * @returns {OsRelease}
 */
export function parseOsRelease(text) {
  const fields = new Map(
    text.split('\n').flatMap((line) => {
      const match = /^([A-Z_]+)=(.*)$/.exec(line.trim())
      return match ? [[match[1], unquote(match[2] ?? '')]] : []
    }),
  )
  const likes = (fields.get('ID_LIKE') ?? '').split(/\s+/)
  return {
    name: fields.get('PRETTY_NAME') ?? fields.get('NAME') ?? 'an unknown system',
    codename: fields.get('VERSION_CODENAME') ?? '',
    family: familyOf(fields.get('ID'), likes),
  }
}

/**
 * @param {string | undefined} id
 * @param {readonly string[]} likes
 * @returns {OsRelease['family']}
 */
function familyOf(id, likes) {
  if (id === 'debian') return 'debian'
  return likes.includes('debian') || likes.includes('ubuntu') ? 'derivative' : 'other'
}

/** @param {string} value */
function unquote(value) {
  return value.replace(/^(["'])(.*)\1$/, '$2')
}
