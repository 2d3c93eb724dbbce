/** Sandboxes of the wall and how they are shown, kept in the URL. */
export interface WallView {
  /** Empty: the newest running sandboxes. */
  readonly ids: readonly string[]
  readonly show: 'lines' | 'terminals'
  /** The sandbox that fills the page. */
  readonly focus: string | undefined
}

/** Each tile is live, and a browser draws no more of them smoothly. */
export const maxTiles = 50

const idPattern = /^[a-z0-9]{1,63}$/

export function parseWall(query: URLSearchParams): WallView {
  const ids = (query.get('ids') ?? '').split(',').filter((id) => idPattern.test(id))
  const focus = query.get('focus') ?? ''
  return {
    ids: [...new Set(ids)].slice(0, maxTiles),
    show: query.get('show') === 'terminals' ? 'terminals' : 'lines',
    focus: idPattern.test(focus) ? focus : undefined,
  }
}

export function wallPath({ ids = [], show, focus }: Partial<WallView>): string {
  const parts = [
    ids.length > 0 && `ids=${ids.slice(0, maxTiles).join(',')}`,
    show === 'terminals' && 'show=terminals',
    focus !== undefined && `focus=${focus}`,
  ].filter(Boolean)
  return parts.length > 0 ? `/wall?${parts.join('&')}` : '/wall'
}
