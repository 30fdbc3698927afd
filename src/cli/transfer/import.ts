import { setTimeout as pause } from 'node:timers/promises';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Manifest } from '../../resource/client/manifests.ts';
import { customResourceDefinitionKind } from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { namespaceKind } from '../../resource/kinds/core/namespace.ts';
import { PACKAGE_KINDS } from '../../resource/kinds/index.ts';
import { isConditionTrue } from '../../resource/object/condition.ts';
import { type KubernetesObject, keyOf, keyText, type OwnerReference } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';
import { inAccess } from '../access/in-access.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable, printableLines } from '../output/printable.ts';
import { isExpected } from '../output/report-error.ts';
import { differences, replacement } from './import-plan.ts';
import { isLedgerObject } from './left-out.ts';
import { manifestId, ownersFirst } from './owners-first.ts';
import { portableObject } from './portable-object.ts';
import { readTransfer, readTransferFiles, type Transfer } from './read-transfer.ts';
import { definitionsOf, TRANSFERRED_KINDS } from './transferred-kinds.ts';

export interface ImportOptions extends PlaceOptions, ActorOptions {
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

type Result = 'created' | 'unchanged' | 'overwritten' | 'conflict' | 'failed';

/** How long a server may take to serve a kind after its definition was created. */
const MAX_ESTABLISH_MS = 30_000;
const ESTABLISH_INTERVAL_MS = 50;

/** `sluice import`: creates the objects of files. An existing object that differs is a conflict, and stays unless it is forced. */
export async function importObjects(
  paths: readonly string[],
  options: ImportOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const { dryRun = false } = options;
  const files = await readTransferFiles(paths);
  const run = async (access: Access) => {
    const transfer = readTransfer(files, await definitionsOf(access.client));
    return await new Import(access, transfer, options, invocation).run();
  };
  return inAccess(options, invocation, run, !dryRun);
}

class Import {
  readonly #access: Access;
  readonly #transfer: Transfer;
  readonly #options: ImportOptions;
  readonly #invocation: Invocation;
  readonly #kinds: ReadonlyMap<string, Kind>;
  readonly #given: ReadonlySet<string>;
  /** Definitions that this import created, and whose kinds the server may not serve yet. */
  readonly #pending = new Set<string>();

  constructor(access: Access, transfer: Transfer, options: ImportOptions, invocation: Invocation) {
    const { manifests } = transfer;
    this.#access = access;
    this.#transfer = transfer;
    this.#options = options;
    this.#invocation = invocation;
    const kinds = [...PACKAGE_KINDS, ...TRANSFERRED_KINDS, ...manifests.map(({ kind }) => kind)];
    this.#kinds = new Map(kinds.map((kind) => [`${kind.apiVersion} ${kind.kind}`, kind]));
    this.#given = new Set(manifests.map(({ kind, object }) => manifestId(kind, object.metadata)));
  }

  async run(): Promise<CommandResult> {
    const { terminal } = this.#invocation;
    const { namespace, dryRun = false, force = false } = this.#options;
    const counts = new Map<Result, number>();
    for (const manifest of ownersFirst(this.#transfer.manifests)) {
      if (namespace !== undefined && !isIn(namespace, manifest)) continue;
      const name = printable(`${manifest.kind.kind} ${keyText(keyOf(manifest.object))}`);
      let result: Result;
      try {
        const imported = await this.#import(manifest);
        result = imported.result;
        const fields = imported.fields.length === 0 ? '' : ` (${imported.fields.map(printable).join(', ')})`;
        if (result === 'conflict') terminal.note(`${name} differs and stays as it is${fields}`);
        else terminal.line(`${name} ${result}${dryRun && result !== 'unchanged' ? ' (dry run)' : ''}${fields}`);
      } catch (error) {
        if (!isExpected(error)) throw error;
        result = 'failed';
        terminal.note(`${printable(manifest.path)}:${manifest.line}: ${name}: ${printableLines(messageOf(error))}`);
      }
      counts.set(result, (counts.get(result) ?? 0) + 1);
    }
    const total = [...counts].map(([result, count]) => `${count} ${result}`).join(', ');
    terminal.note(`${total === '' ? 'no objects' : total}${dryRun ? ' (dry run: nothing was changed)' : ''}`);
    const conflicts = counts.get('conflict') ?? 0;
    if (conflicts > 0 && !force) terminal.note('--force overwrites what differs');
    return conflicts + (counts.get('failed') ?? 0) === 0 ? 0 : 1;
  }

  async #import({ kind, object }: Manifest): Promise<{ result: Result; fields: readonly string[] }> {
    const { client } = this.#access;
    const { dryRun = false, force = false } = this.#options;
    if (isLedgerObject(object))
      throw new SluiceError(
        'Refused',
        `it belongs to a trust ledger, which "sluice key" and "sluice repo adopt" write; remove it from the file`,
      );
    const given = await this.#withOwners(portableObject(kind, object).object);
    const isNew = this.#transfer.newKinds.has(kind);
    if (isNew && !dryRun) await this.#untilServed(kind);
    const existing = isNew && dryRun ? undefined : await client.find(kind, keyOf(given));
    if (existing === undefined) {
      if (!dryRun) await client.create(kind, given);
      if (kind === customResourceDefinitionKind) this.#pending.add(given.metadata.name);
      return { result: 'created', fields: [] };
    }
    const fields = differences(given, portableObject(kind, existing).object);
    if (fields.length === 0) return { result: 'unchanged', fields };
    if (!force) return { result: 'conflict', fields };
    if (!dryRun) await client.update(kind, replacement(given, existing));
    return { result: 'overwritten', fields };
  }

  /** Replaces the uids of owners by those of this server. The garbage collector would delete an object of an unknown owner. */
  async #withOwners(object: KubernetesObject): Promise<KubernetesObject> {
    const { ownerReferences = [], ...metadata } = object.metadata;
    if (ownerReferences.length === 0) return object;
    const owners: OwnerReference[] = [];
    for (const reference of ownerReferences) {
      const uid = await this.#uidOf(reference, metadata.namespace);
      if (uid !== undefined) owners.push({ ...reference, uid });
      else
        this.#invocation.terminal.note(
          printable(
            `${object.kind} ${keyText(metadata)}: left out its owner ${reference.kind} ${reference.name}, which is not there`,
          ),
        );
    }
    return { ...object, metadata: { ...metadata, ...(owners.length === 0 ? {} : { ownerReferences: owners }) } };
  }

  async #uidOf(
    { apiVersion, kind: name, name: owner, uid }: OwnerReference,
    namespace: string | undefined,
  ): Promise<string | undefined> {
    const kind = this.#kinds.get(`${apiVersion} ${name}`);
    if (kind === undefined) return undefined;
    const key = kind.namespaced ? { namespace, name: owner } : { name: owner };
    // A dry run would create it first.
    if (this.#options.dryRun === true && this.#given.has(manifestId(kind, key))) return uid;
    return (await this.#access.client.find(kind, key))?.metadata.uid;
  }

  /** Waits until the server serves a kind whose definition this import created. */
  async #untilServed(kind: Kind): Promise<void> {
    const name = `${kind.plural}.${kind.group}`;
    if (!this.#pending.has(name)) return;
    if (this.#access.server === undefined)
      throw new SluiceError(
        'Unsupported',
        `${name} is served once "sluice up" runs; start it, and import the file again`,
      );
    for (let waited = 0; waited < MAX_ESTABLISH_MS; waited += ESTABLISH_INTERVAL_MS) {
      const definition = await this.#access.client.find(customResourceDefinitionKind, { name });
      if (isConditionTrue(definition?.status?.conditions, 'Established')) {
        this.#pending.delete(name);
        return;
      }
      await pause(ESTABLISH_INTERVAL_MS);
    }
    throw new SluiceError('Timeout', `${name} was created and is not served; import the file again later`);
  }
}

/** True for the objects of a namespace, and for the namespace. */
function isIn(namespace: string, { kind, object: { metadata } }: Manifest): boolean {
  return (kind === namespaceKind ? metadata.name : metadata.namespace) === namespace;
}
