import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The entry of a Kptfile in the index of the corpus, which another YAML reader made. */
export interface CorpusFile {
  readonly file: string;
  readonly apiVersion: string | null;
  readonly gates: readonly string[];
  readonly nConditions: number;
  readonly functions: readonly string[];
  readonly unknownFields: readonly string[];
  readonly parseError: string | null;
  readonly bytes: Buffer;
  readonly text: string;
}

const folder = new URL('../../../shared/corpus/kptfiles/', import.meta.url);

/** Returns the public Kptfiles of the corpus, or undefined with a line on the console if the corpus does not exist. */
export function corpusFiles(): CorpusFile[] | undefined {
  const index = new URL('index.jsonl', folder);
  if (!existsSync(index)) {
    console.log(`Skipped: the corpus of real Kptfiles is not at ${fileURLToPath(folder)}`);
    return undefined;
  }
  const lines = readFileSync(index, 'utf8').trim().split('\n');
  return lines.map((line) => {
    const row = JSON.parse(line) as Omit<CorpusFile, 'text' | 'bytes'>;
    const bytes = readFileSync(`${fileURLToPath(folder)}${row.file}`);
    return { ...row, bytes, text: bytes.toString('utf8') };
  });
}
