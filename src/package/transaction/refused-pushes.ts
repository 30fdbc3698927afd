import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

/** Maximum number of stored refusals. */
const MAX_REFUSED_PUSHES = 100;

const schema = z.array(z.strictObject({ revision: z.string(), commit: z.string(), message: z.string() }));

/** The reason why a rule of the remote refused the last write of a revision, while the revision was at a commit. */
export type RefusalNote = z.infer<typeof schema>[number];

/** Refusals of one mirror, in a file beside its refs: the command that was refused has ended when "sluice why" or `up` report it. */
export class RefusedPushes {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  list(): readonly RefusalNote[] {
    // Most mirrors never have one.
    if (!existsSync(this.#file)) return [];
    try {
      return schema.parse(JSON.parse(readFileSync(this.#file, 'utf8')));
    } catch (error) {
      // The notes are only informative; a damaged or removed file is replaced by the next note.
      if (error instanceof SyntaxError || error instanceof z.ZodError || isMissing(error)) return [];
      throw error;
    }
  }

  /** Notes a refusal in the place of an earlier one of the revision. */
  add(note: RefusalNote): void {
    this.#write([...this.list().filter(({ revision }) => revision !== note.revision), note]);
  }

  /** Ends the refusal of a revision, if there is one. */
  remove(revision: string): void {
    const notes = this.list();
    if (notes.some((note) => note.revision === revision))
      this.#write(notes.filter((note) => note.revision !== revision));
  }

  #write(notes: readonly RefusalNote[]): void {
    if (notes.length === 0) {
      rmSync(this.#file, { force: true });
      return;
    }
    const temporary = `${this.#file}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(notes.slice(-MAX_REFUSED_PUSHES)));
    renameSync(temporary, this.#file);
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
