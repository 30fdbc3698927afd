import { Composer, type Document, isMap, isScalar, LineCounter, type Node, Parser, visit } from 'yaml';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { type FieldCause, fieldPath, type InvalidObjectDetails } from '../object/invalid-object.ts';
import { DEFAULT_NAMESPACE, type KubernetesObject, keyOf, keyText } from '../object/object.ts';
import { positionOf } from '../object/yaml-positions.ts';
import type { Kind } from '../schema/kind.ts';
import type { KindIdentity } from '../schema/kind-identity.ts';
import { unknownFieldHint } from '../schema/unknown-siblings.ts';

export interface ManifestFile {
  /** Path as messages name it. */
  readonly path: string;
  readonly text: string;
}

export interface Manifest {
  readonly kind: Kind;
  /** With defaults, and with the given namespace where the kind has namespaces and the file names none. */
  readonly object: KubernetesObject;
  readonly path: string;
  /** The first line of the document, from 1. */
  readonly line: number;
}

/** An error in a file. */
export interface ManifestProblem {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  /** The field, if the file is YAML at all. */
  readonly field: string;
  readonly message: string;
}

export interface ManifestErrorDetails {
  readonly problems: readonly ManifestProblem[];
}

/** Bounds of one file. */
export interface ManifestLimits {
  readonly maxCharacters: number;
  readonly maxDocuments: number;
}

const DEFAULT_LIMITS: ManifestLimits = { maxCharacters: 4 * 1024 * 1024, maxDocuments: 5000 };
/** Begins or ends a document wherever it stands, also in a text of several lines. */
const MARKER = /^(?:---|\.\.\.)/gm;
const MAX_DOCUMENT_LENGTH = 4 * 1024 * 1024;
const MAX_NODES = 500_000;
const MAX_DEPTH = 100;
const MAX_ALIASES = 100;
const TOO_DEEP = `the document is nested more than ${MAX_DEPTH} levels deep`;
const MAX_SHOWN_PROBLEMS = 20;

/**
 * Reads YAML files, each with any number of documents, into objects of the given kinds. Fields that a kind does not have
 * are errors here, since a file is written by hand. Throws one InvalidInput with ManifestErrorDetails that lists all
 * problems of all files: unreadable YAML, unknown kinds, invalid or unknown fields, one object twice.
 */
export function readManifests(
  files: readonly ManifestFile[],
  kinds: Iterable<Kind>,
  limits: ManifestLimits = DEFAULT_LIMITS,
  namespace: string = DEFAULT_NAMESPACE,
): Manifest[] {
  const known = new Map([...kinds].map((kind) => [`${kind.apiVersion} ${kind.kind}`, kind]));
  const problems: ManifestProblem[] = [];
  const manifests = files.flatMap((file) => readFile(file, known, problems, limits, namespace));
  findRepeated(manifests, problems);
  if (problems.length > 0) throw manifestError(problems);
  return manifests;
}

function readFile(
  { path, text }: ManifestFile,
  known: ReadonlyMap<string, Kind>,
  problems: ManifestProblem[],
  limits: ManifestLimits,
  namespace: string,
): Manifest[] {
  const lines = new LineCounter();
  const add = (position: { line: number; column: number }, field: string, message: string) =>
    problems.push({ path, line: position.line, column: position.column, field, message });
  const start = { line: 1, column: 1 };
  if (text.length > limits.maxCharacters) {
    add(start, '', `the file has ${text.length} characters, at most ${limits.maxCharacters} are allowed`);
    return [];
  }
  const documents = parseDocuments(text, lines, limits);
  if (typeof documents === 'string') {
    add(start, '', documents);
    return [];
  }
  const manifests: Manifest[] = [];
  for (const document of documents) {
    const error = document.errors[0];
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0]);
      // The parser calls itself for every level.
      const tooDeep = /call stack/.test(error.message);
      add({ line, column: col }, '', tooDeep ? TOO_DEEP : firstLine(error.message));
      continue;
    }
    if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) continue;
    const at = (field: readonly (string | number)[]) => positionOf(document, lines, field);
    const flaw = findFlaw(document);
    if (flaw !== undefined) {
      const { line, col } = lines.linePos(flaw.offset);
      add({ line, column: col }, '', flaw.message);
      continue;
    }
    const result = readDocument(document, known, namespace);
    if (Array.isArray(result)) for (const cause of result) add(at(cause.path), cause.field, cause.message);
    else manifests.push({ ...result, path, line: at([]).line });
  }
  return manifests;
}

/** The documents, each parsed when it is reached, or the problem of the whole text. */
function parseDocuments(
  text: string,
  lineCounter: LineCounter,
  { maxDocuments }: ManifestLimits,
): Iterable<Document> | string {
  const markers = [...text.matchAll(MARKER)].map(({ index }) => index);
  if (markers.length > maxDocuments) return `the file has more than ${maxDocuments} documents`;
  const ends = [...markers, text.length];
  const longest = ends.reduce((length, end, index) => Math.max(length, end - (ends[index - 1] ?? 0)), 0);
  if (longest > MAX_DOCUMENT_LENGTH)
    return `a document has ${longest} characters, at most ${MAX_DOCUMENT_LENGTH} are allowed`;
  // Repeated keys are found below: the library compares every key with every other.
  const options = { lineCounter, merge: true, uniqueKeys: false, prettyErrors: false, logLevel: 'error' } as const;
  // As parseAllDocuments does, which would hold all documents with their positions: a hundred times the memory of the text.
  return new Composer(options).compose(new Parser(lineCounter.addNewLine).parse(text));
}

/** Finds content that is valid YAML but not accepted: too many nodes, too deep nesting, duplicate keys. */
function findFlaw(document: Document): { message: string; offset: number } | undefined {
  let nodes = 0;
  let flaw: { message: string; offset: number } | undefined;
  visit(document, (_key, node, ancestors) => {
    const report = (message: string, place: unknown = node) => {
      flaw = { message, offset: (place as Node | undefined)?.range?.[0] ?? 0 };
      return visit.BREAK;
    };
    nodes += 1;
    if (ancestors.length > 2 * MAX_DEPTH) return report(TOO_DEEP);
    if (nodes > MAX_NODES) return report(`the document has more than ${MAX_NODES} nodes`);
    if (!isMap(node)) return undefined;
    const keys = new Set<string>();
    for (const { key } of node.items) {
      if (!isScalar(key)) return report('a key must be a plain value', key);
      const name = String(key.value);
      if (keys.has(name)) return report(`the key ${JSON.stringify(name)} occurs twice in one object`, key);
      keys.add(name);
    }
    return undefined;
  });
  return flaw;
}

function readDocument(
  document: Document,
  known: ReadonlyMap<string, Kind>,
  namespace: string,
): { kind: Kind; object: KubernetesObject } | FieldCause[] {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    // The library reports too many or broken aliases with a generic error.
    return [{ field: '', path: [], message: firstLine(String((error as Error).message)) }];
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [{ field: '', path: [], message: 'expected an object with apiVersion, kind and metadata' }];
  const { apiVersion, kind: name } = value as Record<string, unknown>;
  if (typeof apiVersion !== 'string') return [{ field: 'apiVersion', path: ['apiVersion'], message: 'Required value' }];
  if (typeof name !== 'string') return [{ field: 'kind', path: ['kind'], message: 'Required value' }];
  const kind = known.get(`${apiVersion} ${name}`);
  if (kind === undefined) return [{ field: 'kind', path: ['kind'], message: unknownKind(apiVersion, name, known) }];
  return parseObject(kind, value, namespace);
}

function parseObject(
  kind: Kind,
  value: unknown,
  namespace: string,
): { kind: Kind; object: KubernetesObject } | FieldCause[] {
  try {
    const { object, unknownFields } = kind.parse(value);
    if (unknownFields.length > 0)
      return unknownFields.map((path) => {
        const message = `unknown field${unknownFieldHint(kind.fields, value, path)}`;
        return { field: fieldPath(path), path, message };
      });
    if (!kind.strategy.serverNamed && object.metadata.name === '')
      return [{ field: 'metadata.name', path: ['metadata', 'name'], message: 'Required value' }];
    return { kind, object: withNamespace(kind, withoutOwners(object), namespace) };
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    const details = error.details as InvalidObjectDetails | undefined;
    return [...(details?.causes ?? [{ field: '', path: [], message: error.message }])];
  }
}

/** Removes managedFields, which the server writes; files that were exported from a server often contain them. */
function withoutOwners(object: KubernetesObject): KubernetesObject {
  const { managedFields: _owners, ...metadata } = object.metadata;
  return _owners === undefined ? object : { ...object, metadata };
}

function withNamespace(kind: KindIdentity, object: KubernetesObject, namespace: string): KubernetesObject {
  if (!kind.namespaced || object.metadata.namespace !== undefined) return object;
  return { ...object, metadata: { ...object.metadata, namespace } };
}

function unknownKind(apiVersion: string, name: string, known: ReadonlyMap<string, Kind>): string {
  const versions = [...known.values()].filter((kind) => kind.kind === name).map((kind) => kind.apiVersion);
  if (versions.length > 0) return `${name} is not known in ${apiVersion}; it is known in ${versions.join(', ')}`;
  if (name === 'PackageRevision' || name === 'PackageRevisionResources')
    return `${name} is not configuration: packages live in Git repositories; write it with "kubectl apply -f" while "sluice up" runs`;
  const kinds = [...known.values()];
  const near = nearMisses(name, new Set(kinds.map((kind) => kind.kind)));
  if (near.length > 0) {
    const meant = kinds.filter((kind) => near.includes(kind.kind)).map((kind) => `${kind.kind} (${kind.apiVersion})`);
    return `${name} (${apiVersion}) is not known; did you mean ${meant.join(' or ')}?`;
  }
  const names = kinds.map((kind) => `${kind.kind} (${kind.apiVersion})`).sort();
  return `${name} (${apiVersion}) is not known; known kinds are ${names.join(', ')}`;
}

function findRepeated(manifests: readonly Manifest[], problems: ManifestProblem[]): void {
  const first = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const { kind, object, path, line } = manifest;
    if (object.metadata.name === '') continue;
    const id = `${kind.apiVersion} ${kind.kind} ${keyText(keyOf(object))}`;
    const earlier = first.get(id);
    if (earlier === undefined) first.set(id, manifest);
    else {
      const message = `${kind.kind} ${JSON.stringify(object.metadata.name)} stands in ${earlier.path}:${earlier.line} already`;
      problems.push({ path, line, column: 1, field: 'metadata.name', message });
    }
  }
}

function manifestError(problems: readonly ManifestProblem[]): SluiceError<ManifestErrorDetails> {
  const shown = problems.slice(0, MAX_SHOWN_PROBLEMS).map(({ path, line, column, field, message }) => {
    return `${path}:${line}:${column}: ${field === '' ? '' : `${field}: `}${message}`;
  });
  if (problems.length > shown.length) shown.push(`and ${problems.length - shown.length} more`);
  return new SluiceError('InvalidInput', shown.join('\n'), { details: { problems } });
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.replace(/:$/, '') ?? text;
}
