import { createHash } from 'node:crypto';

/** The files of a package revision as a server shows them. */
export interface ContentsView {
  /** The SHA-256 of each file, by path. */
  readonly files: ReadonlyMap<string, string>;
  /** Paths of binary files. Porch represents them as text, which loses bytes. */
  readonly binary: ReadonlySet<string>;
}

type Texts = Readonly<Record<string, string>>;

export function contentsView(resources: Texts = {}, binaryResources: Texts = {}): ContentsView {
  const files = new Map(Object.entries(resources).map(([path, text]) => [path, sha256(text)]));
  for (const [path, base64] of Object.entries(binaryResources)) files.set(path, sha256(Buffer.from(base64, 'base64')));
  return { files, binary: new Set(Object.keys(binaryResources)) };
}

/** One digest of all files and their paths, as `sha256:` and its first 12 digits. */
export function contentsDigest({ files }: ContentsView): string {
  const hash = createHash('sha256');
  for (const path of [...files.keys()].sort()) hash.update(`${path}\0${files.get(path)}\n`);
  return `sha256:${hash.digest('hex').slice(0, 12)}`;
}

/** Paths of the files that differ. Of files that are binary for one of the two only the presence is compared. */
export function differentFiles(one: ContentsView, other: ContentsView): readonly string[] {
  const paths = new Set([...one.files.keys(), ...other.files.keys()]);
  const isBinary = (path: string) => one.binary.has(path) || other.binary.has(path);
  const isAlike = (path: string) =>
    isBinary(path) ? one.files.has(path) && other.files.has(path) : one.files.get(path) === other.files.get(path);
  return [...paths].filter((path) => !isAlike(path)).sort();
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
