import { type FileHandle, open, rename, rm } from 'node:fs/promises';

export interface AuditFileOptions {
  readonly path: string;
  /** Bytes after which a new file begins. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Older files that are kept, as `<path>.1` and so on. Default 5. */
  readonly keep?: number;
  /** Called when lines could not be written. */
  readonly onError: (error: unknown, where: string) => void;
}

/** Lines that wait while the disk is busy; more are dropped, and the loss is reported. */
const MAX_WAITING_LINES = 10_000;

/** A file to which lines are appended, readable by its owner alone, and rotated when it is large. */
export class AuditFile {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #keep: number;
  readonly #onError: AuditFileOptions['onError'];
  #waiting: string[] = [];
  #lost = 0;
  #writing: Promise<void> | undefined;
  #file: FileHandle | undefined;
  #size = 0;

  constructor({ path, maxBytes = 64 * 1024 * 1024, keep = 5, onError }: AuditFileOptions) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#keep = keep;
    this.#onError = onError;
  }

  /** Adds a line. Callers do not wait for the disk: lines that come meanwhile are written together. */
  append(line: string): void {
    if (this.#waiting.length >= MAX_WAITING_LINES) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(line);
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when no line waits. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  /** Writes the lines that wait and closes the file. */
  async close(): Promise<void> {
    await this.flush();
    await this.#file?.close();
    this.#file = undefined;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(Buffer.from(`${lines.join('\n')}\n`));
      } catch (error) {
        this.#lost += lines.length;
        await this.#file?.close().catch(() => undefined);
        this.#file = undefined;
        this.#onError(error, `writing ${this.#path}`);
      }
    }
    if (this.#lost === 0) return;
    this.#onError(new Error(`${this.#lost} lines were lost`), `writing ${this.#path}`);
    this.#lost = 0;
  }

  async #append(bytes: Buffer): Promise<void> {
    if (this.#file !== undefined && this.#size + bytes.length > this.#maxBytes) await this.#rotate();
    if (this.#file === undefined) {
      this.#file = await open(this.#path, 'a', 0o600);
      // Other users may be able to read a file that existed before.
      await this.#file.chmod(0o600);
      this.#size = (await this.#file.stat()).size;
    }
    await this.#file.appendFile(bytes);
    this.#size += bytes.length;
  }

  async #rotate(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
    const names = [this.#path, ...Array.from({ length: this.#keep }, (_, index) => `${this.#path}.${index + 1}`)];
    await rm(names.at(-1) ?? this.#path, { force: true });
    for (let at = names.length - 2; at >= 0; at -= 1) await renameIfThere(names[at] ?? '', names[at + 1] ?? '');
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
