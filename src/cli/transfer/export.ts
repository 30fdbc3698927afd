import { resolve } from 'node:path';
import { dump } from 'js-yaml';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { counted } from '../../foundation/text/counted.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';
import { inAccess, scopeHint } from '../access/in-access.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable, printableLines } from '../output/printable.ts';
import { type LeftOut, whyLeftOut } from './left-out.ts';
import { type Portable, portableObject } from './portable-object.ts';
import { sortedKeys } from './sorted-keys.ts';
import { MAX_TRANSFER_CHARACTERS, MAX_TRANSFER_DOCUMENTS } from './transfer-limits.ts';
import { definitionsOf, isOwnKind, TRANSFERRED_KINDS, userKinds } from './transferred-kinds.ts';
import { writeOwnFile } from './write-own-file.ts';

export interface ExportOptions extends PlaceOptions, ActorOptions {
  readonly includeSecrets?: boolean;
  readonly force?: boolean;
}

interface Found {
  readonly kind: Kind;
  readonly object: KubernetesObject;
}

const REASONS: Readonly<Record<Exclude<LeftOut, 'quiet'>, string>> = {
  secret: 'Secrets, which --include-secrets exports',
  token: 'Secrets with tokens, which only the server that issued them accepts',
  ledger: 'objects of the trust ledger, which is about one server',
  deleted: 'objects that are being deleted',
  controlled: 'objects that their controller creates',
};
const HEADER = '# Objects of Sluice. "sluice import" creates them on another server.\n';

/** `sluice export`: the objects of a server or data folder that are not packages, as a stream of YAML documents. */
export function exportObjects(
  file: string | undefined,
  options: ExportOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { includeSecrets = false, force = false } = options;
  if (includeSecrets && file === undefined) {
    throw new SluiceError(
      'InvalidInput',
      'cannot write Secrets to standard output: name a file, which only its owner can read',
    );
  }
  return inAccess(options, invocation, async (access) => {
    const { terminal } = invocation;
    const leftOut = new Map<Exclude<LeftOut, 'quiet'>, string[]>();
    const exported: Found[] = [];
    const refused: string[] = [];
    for (const { kind, object } of await objectsOf(access, options.namespace, refused)) {
      const why = whyLeftOut(kind, object, includeSecrets);
      if (why !== undefined) {
        if (why !== 'quiet') leftOut.set(why, [...(leftOut.get(why) ?? []), nameOf(kind, object)]);
        continue;
      }
      const portable = portableOf(kind, object);
      exported.push({ kind, object: portable.object });
      const unknown = portable.unknownFields.join(', ');
      if (unknown !== '') terminal.note(`left out unknown fields of ${nameOf(kind, object)}: ${printable(unknown)}`);
    }
    const text = streamOf(exported.map(({ object }) => object));
    // A file without objects would look like an export of a server that has none.
    const isNothing = exported.length === 0 && refused.length > 0;
    if (file === undefined) terminal.out.write(isNothing ? '' : text);
    else if (!isNothing) await writeOwnFile(resolve(file), text, force);
    const hosted = exported.filter(({ kind, object }) => kind === repositoryKind && isHosted(object as Repository));
    if (hosted.length > 0)
      terminal.note(
        `exported without their content, which is in the data folder: ${shown(hosted.map(({ kind, object }) => nameOf(kind, object)))}; push it to a Git host first, and register that`,
      );
    for (const [why, names] of leftOut) terminal.note(`left out ${names.length} ${REASONS[why]}: ${shown(names)}`);
    for (const message of refused) terminal.note(`not exported: ${printableLines(message)}${scopeHint(message)}`);
    const place =
      file === undefined ? '' : isNothing ? `; ${printable(file)} was not written` : ` to ${printable(file)}`;
    terminal.note(`${counted(exported.length, 'object')} exported${place}`);
    // The caller must see that objects may be missing.
    return refused.length === 0 ? 0 : 1;
  });
}

function portableOf(kind: Kind, object: KubernetesObject): Portable {
  try {
    return portableObject(kind, object);
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot export ${nameOf(kind, object)}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** True for a repository in the data folder, which another server does not have. */
function isHosted({ spec }: Repository): boolean {
  return spec.git?.repo.startsWith('sluice:') === true;
}

/** Documents in the order of the objects, each with its fields in alphabetical order after the identity. */
export function streamOf(objects: readonly KubernetesObject[]): string {
  if (objects.length > MAX_TRANSFER_DOCUMENTS)
    throw tooMuch(`${objects.length} objects`, `${MAX_TRANSFER_DOCUMENTS} objects`);
  const documents = [HEADER];
  let length = HEADER.length;
  for (const { apiVersion, kind, metadata, ...content } of objects) {
    const sorted = { apiVersion, kind, metadata: sortedKeys(metadata), ...(sortedKeys(content) as object) };
    const document = `---\n${dump(JSON.parse(JSON.stringify(sorted)), { lineWidth: -1, noRefs: true })}`;
    length += document.length;
    if (length > MAX_TRANSFER_CHARACTERS)
      throw tooMuch(`${objects.length} objects`, `${MAX_TRANSFER_CHARACTERS} characters`);
    documents.push(document);
  }
  return documents.join('');
}

function tooMuch(what: string, limit: string): SluiceError {
  return new SluiceError(
    'LimitExceeded',
    `cannot export ${what} into one file, which can have ${limit}; export one namespace at a time with -n`,
  );
}

/** Objects by kind, namespace and name. Of a whole cluster only those that are related to Sluice. */
async function objectsOf(access: Access, namespace: string | undefined, refused: string[]): Promise<Found[]> {
  const { client } = access;
  const found = async (kinds: readonly Kind[]) => {
    const ofKinds: Found[] = [];
    for (const kind of kinds) ofKinds.push(...(await foundOf(access, kind, namespace, refused)));
    return ofKinds;
  };
  const own = await found(TRANSFERRED_KINDS.filter(isOwnKind));
  const isRelated = clusterFilter(access, own);
  const others = [
    ...TRANSFERRED_KINDS.filter(
      (kind) => !isOwnKind(kind) && (access.isOwnServer || kind.namespaced || kind === namespaceKind),
    ),
    ...userKinds(await definitionsOf(client)).filter((kind) => access.isOwnServer || kind.namespaced),
  ];
  const rest = (await found(others)).filter(isRelated);
  const rank = new Map([...new Set([...TRANSFERRED_KINDS, ...others])].map((kind, index) => [kind, index]));
  const order = ({ kind }: Found) => rank.get(kind) ?? rank.size;
  return [...rest, ...own]
    .map((found, index) => ({ found, index }))
    .sort((a, b) => order(a.found) - order(b.found) || a.index - b.index)
    .map(({ found }) => found);
}

/** A server of Sluice has nothing but its objects; a cluster has many that are not related to it. */
function clusterFilter({ isOwnServer }: Access, own: readonly Found[]): (found: Found) => boolean {
  if (isOwnServer) return () => true;
  const namespaces = new Set(own.map(({ object }) => object.metadata.namespace));
  return ({ kind, object }) =>
    namespaces.has(kind === namespaceKind ? object.metadata.name : object.metadata.namespace);
}

/** The objects of a kind, sorted. What the caller may not read is added to `refused`. */
async function foundOf(
  { client }: Access,
  kind: Kind,
  namespace: string | undefined,
  refused: string[],
): Promise<Found[]> {
  try {
    if (namespace !== undefined && !kind.namespaced) {
      // The namespace itself belongs to its objects.
      const object = kind === namespaceKind ? await client.find(kind, { name: namespace }) : undefined;
      return object === undefined ? [] : [{ kind, object }];
    }
    const { items } = await client.list(kind, namespace === undefined ? {} : { namespace });
    return items.toSorted((a, b) => compareKeys(a.metadata, b.metadata)).map((object) => ({ kind, object }));
  } catch (error) {
    // A cluster without the definition.
    if (isSluiceError(error, 'NotFound')) return [];
    if (!isSluiceError(error, 'Refused')) throw error;
    refused.push(error.message);
    return [];
  }
}

function compareKeys(a: ObjectKey, b: ObjectKey): number {
  const [left, right] = [`${a.namespace ?? ''}\0${a.name}`, `${b.namespace ?? ''}\0${b.name}`];
  return left < right ? -1 : Number(left > right);
}

const MAX_SHOWN_NAMES = 10;

function shown(names: readonly string[]): string {
  const more = names.length > MAX_SHOWN_NAMES ? `, and ${names.length - MAX_SHOWN_NAMES} more` : '';
  return `${names.slice(0, MAX_SHOWN_NAMES).map(printable).join(', ')}${more}`;
}

function nameOf(kind: Kind, { metadata }: KubernetesObject): string {
  return `${kind.kind} ${keyText(metadata)}`;
}
