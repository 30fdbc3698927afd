import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RefChange } from '../../git/git-repository.ts';
import { type ContainedStates, containsStates, isRecorded, type ShownStates } from '../trust/ledger/shown-states.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';

const fileSchema = z.object({ repository: z.string(), contained: z.record(z.string(), z.int()) });

const DIGEST_BYTES = 16;

export interface ShownRefsOptions {
  /** In the folder of the mirror, which registrations of one repository share. */
  readonly file: string;
  /** The refs that the registration reads: digests of the same ones can be compared. */
  readonly prefixes: readonly string[];
  readonly trust: Pick<RepositoryTrust, 'repository' | 'shown' | 'shownBy' | 'advanceShown' | 'flushed'>;
}

/**
 * What clients have been shown of a mirror, where another process can take over with a mirror of its own. Before this process shows other refs
 * than before, it writes a new state to the ledger; a file beside each mirror has the states that the mirror contains. A process that cannot reach
 * the remote compares both: with an older mirror, what was shown before would look deleted.
 */
export class ShownRefs {
  readonly #options: ShownRefsOptions;
  readonly #scope: string;
  /** Of all refs: the exclusive or of the digests of each, so that a change costs what changed. Undefined before the first reading. */
  #digest: Buffer | undefined;

  constructor(options: ShownRefsOptions) {
    this.#options = options;
    this.#scope = createHash('sha256').update(JSON.stringify(options.prefixes)).digest('hex').slice(0, 8);
  }

  /** To be read before a fetch of all refs, which brings them. Undefined where no other process takes over. */
  get wanted(): ShownStates | undefined {
    return this.#options.trust.shown();
  }

  /** Throws Unavailable if a mirror with these refs lacks what was shown. */
  expectCurrent(refs: readonly { readonly name: string; readonly oid: string }[], address: string): void {
    const { wanted } = this;
    if (wanted === undefined) return;
    const changes = refs.map(({ name, oid }) => ({ name, before: undefined, after: oid }));
    if (containsStates(this.#read(), this.#textOf(digestAfter(undefined, changes)), wanted)) return;
    throw new SluiceError(
      'Unavailable',
      `the mirror of ${address} is older than what clients have read, and is used again once the remote can be read`,
    );
  }

  /**
   * To be awaited before changed refs are shown, once the mirror has them. `fetched` are the states that a fetch of all refs has brought. Throws the
   * error of the ledger; then the changes must not be shown.
   */
  async prepare(changes: readonly RefChange[], fetched: ShownStates | undefined): Promise<void> {
    const { wanted } = this;
    if (wanted === undefined) return;
    const { trust } = this.#options;
    const digest = digestAfter(this.#digest, changes);
    const refs = this.#textOf(digest);
    // The index of a new process is empty, and reads all refs as changed.
    const isOther = this.#digest === undefined || changes.length > 0;
    const own = isOther && !isRecorded(wanted, refs, trust.shownBy) ? trust.advanceShown(refs) : undefined;
    this.#contain({ ...numbersOf(fetched ?? {}), ...(own ?? {}) });
    // Also if it is recorded: that may wait to be written since an earlier attempt.
    if (isOther) await trust.flushed();
    this.#digest = digest;
  }

  #textOf(digest: Buffer): string {
    return `${this.#scope}:${digest.toString('hex')}`;
  }

  /** Notes states that the mirror contains. */
  #contain(states: ContainedStates): void {
    const contained = this.#read();
    const later = Object.entries(states).filter(([writer, number]) => number > (contained[writer] ?? 0));
    if (later.length === 0) return;
    const { file, trust } = this.#options;
    const temporary = `${file}.${process.pid}`;
    const content = { repository: trust.repository, contained: { ...contained, ...Object.fromEntries(later) } };
    writeFileSync(temporary, JSON.stringify(content));
    renameSync(temporary, file);
  }

  /** Empty also if the file is damaged: then only a mirror with the same refs is current. */
  #read(): ContainedStates {
    const { file, trust } = this.#options;
    try {
      const { repository, contained } = fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
      return repository === trust.repository ? contained : {};
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (isAbsent || error instanceof SyntaxError || error instanceof z.ZodError) return {};
      throw error;
    }
  }
}

function numbersOf(states: ShownStates): ContainedStates {
  return Object.fromEntries(Object.entries(states).map(([writer, { number }]) => [writer, number]));
}

function digestAfter(before: Buffer | undefined, changes: readonly RefChange[]): Buffer {
  const sum = Buffer.alloc(DIGEST_BYTES, before);
  for (const { name, before: old, after } of changes)
    for (const oid of [old, after]) {
      if (oid === undefined) continue;
      const digest = createHash('sha256').update(`${name} ${oid}`).digest();
      for (let at = 0; at < DIGEST_BYTES; at += 1) sum[at] = (sum[at] ?? 0) ^ (digest[at] ?? 0);
    }
  return sum;
}
