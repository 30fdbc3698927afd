import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { ObjectDatabase } from '../../src/resource/storage/sqlite/object-database.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';

const script = fileURLToPath(new URL('object-writer.ts', import.meta.url));
const context = { actor: { name: 'checker' }, face: 'api' } as const;
const MARKER = { namespace: 'default', name: 'marker' };

/** The report of a writer: the marks of its writes; an empty mark is a deletion. */
interface Line {
  readonly opening?: string;
  readonly begin?: string;
  readonly done?: string;
  readonly mark?: string;
  readonly version?: string;
}

/** The objects by name, each with the mark of its last write. */
type State = ReadonlyMap<string, string>;

/** One database over many runs of its writer. */
export class CrashedDatabase {
  readonly #path: string;
  #state: State = new Map();
  #newest = 0n;
  #life = 0;
  readonly #snapshots: { readonly version: string; readonly state: State }[] = [{ version: '0', state: new Map() }];

  constructor(folder: string) {
    this.#path = join(folder, 'objects.db');
  }

  /** Lets a writer write for a while, kills it, and checks the database. Returns the number of acknowledged writes. */
  async live(): Promise<number> {
    this.#life += 1;
    const lines = await this.#write();
    const possible = this.#possible(lines);
    const done = lines.filter((line) => line.done !== undefined);
    let last = this.#newest;
    for (const { version = '' } of done) {
      expect(BigInt(version), `life ${this.#life}: a version came again`).toBeGreaterThan(last);
      last = BigInt(version);
    }
    await this.#check(possible, last);
    return done.length;
  }

  async #write(): Promise<Line[]> {
    const child = spawn(process.execPath, [script, this.#path, `${this.#life}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines: Line[] = [];
    // Some die while they open the file, most while they write.
    const early = Math.random() < 0.1;
    let killing = false;
    for await (const text of createInterface({ input: child.stdout })) {
      const line = JSON.parse(text) as Line;
      lines.push(line);
      if (killing || (!early && line.done === undefined)) continue;
      killing = true;
      setTimeout(() => child.kill('SIGKILL'), Math.random() * 40);
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
    expect(child.signalCode, 'the writer ended by itself').toBe('SIGKILL');
    return lines;
  }

  /** The permitted states of each object: that of the last acknowledged write, or that of the write in flight. */
  #possible(lines: readonly Line[]): Map<string, Set<string>> {
    const possible = new Map<string, Set<string>>();
    for (const [name, mark] of this.#state) possible.set(name, new Set([mark]));
    for (const { begin, done, mark = '' } of lines) {
      if (begin !== undefined) possible.set(begin, new Set([...(possible.get(begin) ?? ['']), mark]));
      if (done !== undefined) possible.set(done, new Set([mark]));
    }
    return possible;
  }

  async #check(possible: ReadonlyMap<string, ReadonlySet<string>>, last: bigint): Promise<void> {
    const database = ObjectDatabase.open({ path: this.#path, clock: systemClock });
    const log = new EventLog({ clock: systemClock, journal: database.journal });
    database.attach(log);
    const storage = database.storage(configMapKind, log);
    const where = `life ${this.#life}`;
    try {
      expect(BigInt(log.version), `${where}: the versions restart`).toBeGreaterThanOrEqual(last);
      const { items } = await storage.list(context);
      const found = new Map(items.map(({ metadata, data }) => [metadata.name, data?.mark ?? ''] as const));
      found.delete(MARKER.name);
      for (const [name, marks] of possible)
        expect([...marks], `${where}: ${name} lost an acknowledged write`).toContain(found.get(name) ?? '');
      for (const name of found.keys()) expect(possible.has(name), `${where}: ${name} came from nowhere`).toBe(true);
      this.#state = found;

      // A write after the restart also marks where the watch may stop.
      const live = items.find(({ metadata }) => metadata.name === MARKER.name);
      const marker = configMapKind.complete({
        metadata: { ...MARKER, ...(live && { resourceVersion: live.metadata.resourceVersion }) },
        data: { mark: where },
      });
      const { metadata } = await (live === undefined
        ? storage.create(context, marker)
        : storage.update(context, marker));
      this.#newest = BigInt(metadata.resourceVersion);
      expect(this.#newest).toBeGreaterThan(last);
      const start = this.#snapshots[Math.floor(Math.random() * this.#snapshots.length)];
      const followed = new Map(start?.state);
      let seen = BigInt(start?.version ?? '0');
      const ending = new AbortController();
      for await (const event of storage.watch(context, { resourceVersion: `${seen}`, signal: ending.signal })) {
        if (event.type === 'BOOKMARK') continue;
        const { name, resourceVersion } = event.object.metadata;
        expect(BigInt(resourceVersion), `${where}: events are out of order`).toBeGreaterThan(seen);
        seen = BigInt(resourceVersion);
        if (event.type === 'DELETED') followed.delete(name);
        else followed.set(name, event.object.data?.mark ?? '');
        if (seen === this.#newest) break;
      }
      ending.abort();
      followed.delete(MARKER.name);
      expect(sorted(followed), `${where}: the watch from ${start?.version} missed something`).toEqual(sorted(found));
      this.#snapshots.push({ version: metadata.resourceVersion, state: found });
    } finally {
      log.close();
      database.close();
    }
  }
}

function sorted(state: State): [string, string][] {
  return [...state].sort();
}
