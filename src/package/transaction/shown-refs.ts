import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RefChange } from '../../git/git-repository.ts';
import { containsStates, joinStates, type ShownStates } from '../trust/ledger/shown-states.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';

const fileSchema = z.object({
  repository: z.string(),
  /** That the mirror contains. */
  states: z.record(z.string(), z.int()),
  /** Digest of the refs that were shown or fetched last, by registration: they read different ones. */
  refs: z.record(z.string(), z.string()),
});

const DIGEST_BYTES = 16;

export interface ShownRefsOptions {
  /** In the folder of the mirror, which registrations of one repository share. */
  readonly file: string;
  /** `<namespace>/<name>`. */
  readonly registration: string;
  readonly trust: Pick<RepositoryTrust, 'repository' | 'shown' | 'advanceShown' | 'flushed'>;
}

/**
 * What clients have been shown of a mirror, where another process can take over with a mirror of its own. Before this process shows other refs
 * than before, it writes a new state to the ledger; a file beside each mirror has the states that the mirror contains. A process that cannot reach
 * the remote compares both: with an older mirror, what was shown before would look deleted.
 */
export class ShownRefs {
  readonly #options: ShownRefsOptions;
  /** Of all refs: the exclusive or of the digests of each, so that a change costs what changed. Undefined before the first reading. */
  #digest: Buffer | undefined;

  constructor(options: ShownRefsOptions) {
    this.#options = options;
  }

  /** To be read before a fetch of all refs, which brings them. Undefined where no other process takes over. */
  get wanted(): ShownStates | undefined {
    return this.#options.trust.shown();
  }

  /** Throws Unavailable if the mirror lacks what was shown. */
  expectCurrent(address: string): void {
    const { wanted } = this;
    if (wanted === undefined || containsStates(this.#read().states, wanted)) return;
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
    if (this.wanted === undefined) return;
    const { registration, trust } = this.#options;
    const before = this.#read();
    const digest = digestAfter(this.#digest, changes);
    const refs = digest.toString('hex');
    // The index of a new process is empty, and reads all refs as changed.
    const isOther = this.#digest === undefined ? before.refs[registration] !== refs : changes.length > 0;
    const own = isOther ? trust.advanceShown() : undefined;
    const states = joinStates(joinStates(before.states, fetched ?? {}), own ?? {});
    // Of refs that are neither shown nor fetched it is not known which states they belong to.
    const isKnown = own !== undefined || fetched !== undefined;
    if (!containsStates(before.states, states) || (isKnown && before.refs[registration] !== refs))
      this.#write({ repository: trust.repository, states, refs: { ...before.refs, [registration]: refs } });
    if (own !== undefined) await trust.flushed();
    this.#digest = digest;
  }

  /** Without states if the file is damaged: then the mirror counts as older. */
  #read(): z.infer<typeof fileSchema> {
    const { file, trust } = this.#options;
    const { repository } = trust;
    try {
      const content = fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
      if (content.repository === repository) return content;
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (!isAbsent && !(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
    }
    return { repository, states: {}, refs: {} };
  }

  #write(content: z.infer<typeof fileSchema>): void {
    const { file } = this.#options;
    const temporary = `${file}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(content));
    renameSync(temporary, file);
  }
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
