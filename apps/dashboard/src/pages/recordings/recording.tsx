import { useEffect, useRef, useState } from 'preact/hooks'
import { send } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { parseCast } from '../../model/cast.ts'
import type { Cast } from '../../model/cast.ts'
import { Button } from '../../parts/controls.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { Player } from './player.ts'

/** Replays one recording. */
export function RecordingPage({ id }: { readonly id: string }) {
  const path = `/bff/recordings/${encodeURIComponent(id)}`
  const cast = useResource(`recording/${id}`, async (signal) =>
    parseCast(await (await send('GET', path, { signal })).text()),
  )
  return (
    <div class="page full">
      <div class="page-head">
        <h1>Recording</h1>
        <div class="row tight">
          <a class="button" href="/recordings">
            All recordings
          </a>
          <a class="button" href={`${path}/download`} download>
            Download
          </a>
        </div>
      </div>
      <ErrorNote resource={cast} />
      {cast.data ? <Replay cast={cast.data} /> : !cast.error && <Skeleton />}
    </div>
  )
}

const speeds = [1, 2, 4, 8]

function Replay({ cast }: { readonly cast: Cast }) {
  const host = useRef<HTMLDivElement>(null)
  const [player, setPlayer] = useState<Player | undefined>()
  useEffect(() => {
    if (!host.current) return undefined
    const opened = new Player(host.current, cast)
    setPlayer(opened)
    opened.play()
    return () => opened.close()
  }, [cast])
  const position = player?.position.value ?? 0
  return (
    <div class="terminals">
      <div class="terminal-bar" role="toolbar" aria-label="Replay">
        {player?.isPlaying.value ? (
          <Button isSmall action={() => player.pause()}>
            Pause
          </Button>
        ) : (
          <Button isSmall action={() => player?.play()}>
            Play
          </Button>
        )}
        <input
          class="grow"
          type="range"
          aria-label="Position"
          min="0"
          max={cast.duration}
          step="any"
          value={position}
          onInput={({ currentTarget: { value } }) => player?.seek(Number(value))}
        />
        <span class="number soft">
          {formatPosition(position)} / {formatPosition(cast.duration)}
        </span>
        <select
          class="input auto"
          aria-label="Speed"
          onChange={({ currentTarget: { value } }) => player?.setSpeed(Number(value))}
        >
          {speeds.map((speed) => (
            <option key={speed} value={speed}>
              {speed}×
            </option>
          ))}
        </select>
      </div>
      <div class="replay" tabIndex={0} aria-label="Replayed terminal" role="region">
        <div ref={host} />
      </div>
    </div>
  )
}

function formatPosition(seconds: number): string {
  const whole = Math.floor(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}
