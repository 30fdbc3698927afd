import { stringify } from 'yaml';
import { createPacer } from '../../../src/foundation/concurrency/in-slices.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { yamlProblem } from '../../../src/function/lint/yaml-problem.ts';
import { Resource } from '../../../src/function/resource/resource.ts';
import { isResourcePath } from '../../../src/function/resource/resource-path.ts';
import { isBlankDocument, splitDocuments } from '../../../src/package/merge/split-documents.ts';
import { filesInMemory } from '../../../src/package/model/diff/compared-files.ts';
import { type FileChanges, fileChanges, MAX_COMPARED_FILE_BYTES } from '../../../src/package/model/diff/file-diff.ts';
import { hasSecretWithin } from './secret-within.ts';

/** The files of a package, by path below its folder. */
export type PackageFiles = ReadonlyMap<string, Buffer>;

/** What differs between two rendered versions of a package. */
export interface RenderedChanges {
  /** Resources; their `path` is `<kind>[.<group>]/[<namespace>/]<name>`. Values of Secrets are not in it. */
  readonly resources: FileChanges;
  /** What is no resource, and the Kptfile without its status, which is no input. */
  readonly files: FileChanges;
}

const MAX_FILE_BYTES = MAX_COMPARED_FILE_BYTES;
/** Bytes of a document of a file that is read as resources: each is read at once, a kibibyte in some milliseconds. */
const MAX_DOCUMENT_BYTES = 16 * 1024;
/** Bytes of differing files of one side that are read as resources, in this process; the others are compared as files. */
const MAX_PARSED_BYTES = 4 * 1024 * 1024;
const BUDGET = { patchBytes: 64 * 1024, listBytes: 64 * 1024 };
const HIDDEN = '*** (hidden)';
const CHANGED = '*** (hidden, changed)';
/** It repeats the whole object. */
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Compares resource by resource, wherever in the files that differ they are. A file with anything that is not a resource is compared as a file. Lets
 * others have their turn.
 */
export async function renderedChanges(
  before: PackageFiles,
  after: PackageFiles,
  signal: AbortSignal,
): Promise<RenderedChanges> {
  const pace = createPacer();
  const pause = async () => {
    await pace();
    signal.throwIfAborted();
  };
  const old = await contentsOf(before, after, pause);
  const now = await contentsOf(after, before, pause);
  const resources = { before: new Map<string, Buffer>(), after: new Map<string, Buffer>() };
  for (const [id, resource] of old.resources) resources.before.set(id, Buffer.from(await textOf(resource, pause)));
  for (const [id, resource] of now.resources)
    resources.after.set(id, Buffer.from(await textOf(resource, pause, old.resources.get(id))));
  return {
    resources: await fileChanges(filesInMemory(resources.before), filesInMemory(resources.after), signal, BUDGET),
    files: await fileChanges(filesInMemory(old.files), filesInMemory(now.files), signal, BUDGET),
  };
}

type Pause = () => Promise<void>;

interface Document {
  readonly path: string;
  readonly resource: Resource;
  readonly text: string;
}

/** The files that the other side has not, or not like this. */
async function contentsOf(
  side: PackageFiles,
  other: PackageFiles,
  pause: Pause,
): Promise<{ readonly resources: ReadonlyMap<string, Document>; readonly files: Map<string, Buffer> }> {
  const resources = new Map<string, Document>();
  const counts = new Map<string, number>();
  const files = new Map<string, Buffer>();
  let left = MAX_PARSED_BYTES;
  for (const [path, data] of [...side].sort(([one], [next]) => (one < next ? -1 : 1))) {
    if (other.get(path)?.equals(data) === true) continue;
    if (isKptfile(path)) {
      files.set(path, withoutStatus(data));
      continue;
    }
    left -= data.length;
    const documents = left < 0 ? undefined : await documentsOf(path, data, pause);
    // No larger one is compared.
    if (documents === undefined && data.length > MAX_FILE_BYTES) files.set(path, data);
    else if (documents === undefined) {
      const hasSecret = await hasSecretWithin(path, data.toString('utf8'), { isRead: left >= 0, pause });
      files.set(path, hasSecret ? Buffer.from(placeholderOf(data.length)) : data);
    }
    for (const document of documents ?? []) resources.set(freeId(resources, counts, document.resource), document);
    await pause();
  }
  return { resources, files };
}

function isKptfile(path: string): boolean {
  return path === 'Kptfile' || path.endsWith('/Kptfile');
}

/** Undefined unless all documents of a file are resources, and small. */
async function documentsOf(path: string, data: Buffer, pause: Pause): Promise<readonly Document[] | undefined> {
  if (!isResourcePath(path) || data.length > MAX_FILE_BYTES) return undefined;
  try {
    const parts = splitDocuments(data.toString('utf8')).filter((part) => !isBlankDocument(part));
    if (parts.some((part) => part.length > MAX_DOCUMENT_BYTES)) return undefined;
    const documents: Document[] = [];
    for (const [index, text] of parts.entries()) {
      // It ends at the first mistake, while the reader of resources looks for all of them, which can take seconds.
      if (yamlProblem(text) !== undefined) return undefined;
      documents.push({ path, text, resource: Resource.parse(text, { file: path, index }) });
      await pause();
    }
    return documents;
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return undefined;
  }
}

/** `counts`: how often there was each ID before. */
function freeId(
  taken: ReadonlyMap<string, unknown>,
  counts: Map<string, number>,
  { kind, group, namespace, name }: Resource,
): string {
  const id = [group === '' ? kind : `${kind}.${group}`, ...(namespace === undefined ? [] : [namespace]), name].join(
    '/',
  );
  let count = counts.get(id) ?? 0;
  let free: string;
  // A name can end in a number too.
  do {
    count += 1;
    free = count === 1 ? id : `${id} (${count})`;
  } while (taken.has(free));
  counts.set(id, count);
  return free;
}

async function textOf({ path, resource, text }: Document, pause: Pause, before?: Document): Promise<string> {
  const isSecret = resource.kind === 'Secret' && resource.group === '';
  if (!isSecret) {
    const shown = `${text.replace(/^---.*\n/, '').trimEnd()}\n`;
    // The first line can have more than the marker.
    return (await hasSecretWithin(path, text, { isRead: true, pause })) ? placeholderOf(shown.length) : shown;
  }
  const { value } = resource;
  const was = before?.resource.value ?? {};
  const metadata = asRecord(value.metadata);
  const annotations = asRecord(metadata.annotations);
  return stringify({
    ...value,
    ...(annotations[APPLIED] === undefined
      ? {}
      : { metadata: { ...metadata, annotations: { ...annotations, [APPLIED]: HIDDEN } } }),
    ...Object.fromEntries(
      ['data', 'stringData']
        .filter((field) => value[field] !== undefined)
        .map((field) => [field, hidden(value[field], before === undefined ? undefined : asRecord(was[field]))]),
    ),
  });
}

/** Keys stay, values are replaced; one that differs from the former version says so. */
function hidden(values: unknown, before: Readonly<Record<string, unknown>> | undefined): unknown {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) return HIDDEN;
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => {
      const isChanged = before !== undefined && Object.hasOwn(before, key) && before[key] !== value;
      return [key, isChanged ? CHANGED : HIDDEN];
    }),
  );
}

/** In place of the content of a file or resource with a Secret, or of which that cannot be found out. */
function placeholderOf(length: number): string {
  return `# hidden, as it contains a Secret or may contain one; ${length} bytes\n`;
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Conditions are among the gates, and change while a proposal waits. */
function withoutStatus(kptfile: Buffer): Buffer {
  return Buffer.from(kptfile.toString('utf8').replace(/^status:.*\n(?:(?:[ \t#-].*)?\n)*/m, ''));
}
