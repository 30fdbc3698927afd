/** The trailers of one package in the commit of a delivery. */
export interface DeliveredPackage {
  readonly repository: string;
  /** Path of the package in its repository. */
  readonly package: string;
  readonly revision: number;
  /** The published commit the manifests come from. */
  readonly sourceCommit: string;
  /** The tree of the package in that commit. */
  readonly sourceTree: string;
  readonly gates: readonly GateVerdict[];
  /** Reason why the revision counts as out of band, if it does and the target allows that. */
  readonly outOfBand?: string;
}

/** The statuses of verdicts, and why else a gate was closed when the revision was published: see `GateState`. */
export const GATE_STATUSES = [
  'True',
  'False',
  'Unknown',
  'Missing',
  'Unproven',
  'Stale',
  'Expired',
  'NotAllowed',
] as const;

export interface GateVerdict {
  readonly type: string;
  readonly status: (typeof GATE_STATUSES)[number];
  /** The issuer of the verdict. */
  readonly by?: string;
}

export interface RemovedPackage {
  readonly repository: string;
  readonly package: string;
}

export interface Delivery {
  readonly delivered: readonly DeliveredPackage[];
  readonly removed: readonly RemovedPackage[];
}

const PACKAGE = 'Sluice-Package';
const REVISION = 'Sluice-Revision';
const SOURCE_COMMIT = 'Sluice-Source-Commit';
const SOURCE_TREE = 'Sluice-Source-Tree';
const GATES = 'Sluice-Gates';
const OUT_OF_BAND = 'Sluice-Out-Of-Band';
const REMOVED = 'Sluice-Removed';
const TARGET = 'Sluice-Target';

/** Packages that a subject line names. */
const MAX_NAMED = 3;

/**
 * The message of a delivery commit: a subject, and trailers with one group for each package, which begins with `Sluice-Package`, and one
 * `Sluice-Removed` for each removed package.
 */
export function writeMessage(target: string, { delivered, removed }: Delivery): string {
  const lines = [`${TARGET}: ${encode(target)}`];
  for (const item of delivered) {
    lines.push(`${PACKAGE}: ${encode(item.repository)}/${encode(item.package)}`);
    lines.push(`${REVISION}: v${item.revision}`);
    lines.push(`${SOURCE_COMMIT}: ${encode(item.sourceCommit)}`);
    lines.push(`${SOURCE_TREE}: ${encode(item.sourceTree)}`);
    lines.push(`${GATES}: ${item.gates.length === 0 ? 'none' : item.gates.map(gateText).join(', ')}`);
    if (item.outOfBand !== undefined) lines.push(`${OUT_OF_BAND}: ${encode(item.outOfBand)}`);
  }
  for (const item of removed) lines.push(`${REMOVED}: ${encode(item.repository)}/${encode(item.package)}`);
  return `${subject({ delivered, removed })}\n\n${lines.join('\n')}\n`;
}

/** The target that made a delivery commit; undefined for a commit of another writer. */
export function readTarget(message: string): string | undefined {
  const [, target] = /^Sluice-Target: (.*)$/m.exec(message) ?? [];
  return target === undefined ? undefined : decode(target);
}

/** Parses the output of `writeMessage`; skips groups that lack a field. */
export function readMessage(message: string): Delivery {
  const delivered: DeliveredPackage[] = [];
  const removed: RemovedPackage[] = [];
  let group: Map<string, string> | undefined;
  const finish = (): void => {
    const item = group === undefined ? undefined : packageOf(group);
    if (item !== undefined) delivered.push(item);
    group = undefined;
  };
  for (const line of message.split('\n')) {
    const [, key, value] = /^(Sluice-[A-Za-z-]+): (.*)$/.exec(line) ?? [];
    if (key === undefined || value === undefined) continue;
    if (key === PACKAGE) {
      finish();
      group = new Map([[key, value]]);
    } else if (key === REMOVED) {
      finish();
      const name = nameOf(value);
      if (name !== undefined) removed.push(name);
    } else group?.set(key, value);
  }
  finish();
  return { delivered, removed };
}

function packageOf(group: ReadonlyMap<string, string>): DeliveredPackage | undefined {
  const name = nameOf(group.get(PACKAGE) ?? '');
  const [, revision] = /^v(\d{1,15})$/.exec(group.get(REVISION) ?? '') ?? [];
  const [sourceCommit, sourceTree] = [group.get(SOURCE_COMMIT), group.get(SOURCE_TREE)];
  if (name === undefined || revision === undefined || sourceCommit === undefined || sourceTree === undefined)
    return undefined;
  const outOfBand = group.get(OUT_OF_BAND);
  const gates = (group.get(GATES) ?? 'none').split(', ').map(gateOf);
  return {
    ...name,
    revision: Number(revision),
    sourceCommit: decode(sourceCommit),
    sourceTree: decode(sourceTree),
    gates: gates.filter((gate) => gate !== undefined),
    ...(outOfBand === undefined ? {} : { outOfBand: decode(outOfBand) }),
  };
}

function nameOf(value: string): RemovedPackage | undefined {
  const slash = value.indexOf('/');
  return slash < 1 ? undefined : { repository: decode(value.slice(0, slash)), package: decode(value.slice(slash + 1)) };
}

function gateText(gate: GateVerdict): string {
  const by = gate.by === undefined ? '' : ` by ${encode(gate.by)}`;
  return `${encode(gate.type)}=${gate.status}${by}`;
}

function gateOf(text: string): GateVerdict | undefined {
  const [, type, word, by] = /^([^= ]+)=([A-Za-z]+)(?: by (.+))?$/.exec(text) ?? [];
  const status = GATE_STATUSES.find((known) => known === word);
  if (type === undefined || status === undefined) return undefined;
  const verdict = { type: decode(type), status };
  return by === undefined ? verdict : { ...verdict, by: decode(by) };
}

function subject({ delivered, removed }: Delivery): string {
  const parts: string[] = [];
  const names = delivered.map((item) => `${encode(item.package)} v${item.revision}`);
  if (names.length > 0) parts.push(`Deliver ${enumerate(names)}`);
  const deleted = removed.map((item) => encode(item.package));
  if (deleted.length > 0) parts.push(`${parts.length === 0 ? 'Remove' : 'remove'} ${enumerate(deleted)}`);
  return parts.join(', ');
}

function enumerate(names: readonly string[]): string {
  return names.length <= MAX_NAMED
    ? names.join(', ')
    : `${names.slice(0, MAX_NAMED).join(', ')} and ${names.length - MAX_NAMED} more`;
}

/** Escapes line breaks and separators in a value. */
function encode(text: string): string {
  return text
    .toWellFormed()
    .replace(/[%=,\s\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) =>
      encodeURIComponent(character),
    );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not written by Sluice: a bare percent sign is literal.
    return text;
  }
}
