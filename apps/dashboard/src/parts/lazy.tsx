import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { loadPart } from '../data/load-part.ts'
import { Empty, Skeleton } from './status.tsx'
import { Button } from './controls.tsx'

/** Loads a component when it is shown first. A file that is gone, after an upgrade of the server, asks for a reload. */
export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined
  return function Lazy(props: Props) {
    const [, redraw] = useState(0)
    const [isFailed, setFailed] = useState(false)
    useEffect(() => {
      if (loaded) return
      const show = async () => {
        loaded = await loadPart(load)
        redraw((count) => count + 1)
      }
      show().catch(() => setFailed(true))
    }, [])
    if (isFailed) {
      return (
        <Empty title="This part of the page could not be loaded">
          <Button action={() => location.reload()}>Reload the page</Button>
        </Empty>
      )
    }
    if (!loaded) return <Skeleton />
    const Loaded = loaded
    return <Loaded {...props} />
  }
}
