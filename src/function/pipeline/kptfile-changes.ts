import {
  type Condition,
  conditionsOf,
  gatesOf,
  type Kptfile,
  type KptfileEdit,
  kptfileEditSchema,
  readKptfile,
} from '../../../kptfile-schema/index.ts';
import { KPTFILE_REQUEST_ANNOTATIONS } from '../../package/model/revision/lifecycle-annotations.ts';
import { RENDERED } from '../../package/plan/edit/render.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { requestIgnored } from './approval-requests.ts';

/** The changes of functions to the Kptfile of the root package. */
export interface KptfileChanges {
  readonly edits: readonly KptfileEdit[];
  readonly conditions: readonly Condition[];
  /** Types of conditions that were removed. */
  readonly withdraw: readonly string[];
  /** Types of readiness gates that were added. */
  readonly gates: readonly string[];
  /** Changes that are not accepted; one line each. */
  readonly notes: readonly string[];
}

const NOTHING: KptfileChanges = { edits: [], conditions: [], withdraw: [], gates: [], notes: [] };

const INFO_TEXTS = ['description', 'site', 'license', 'licenseFile', 'man'] as const;
const INFO_LISTS = ['emails', 'keywords'] as const;

/**
 * Compares the texts of a Kptfile before and after functions ran: labels, annotations, name and information, conditions, and gates
 * that they added. Functions may not request approvals, change the upstream or the pipeline of the package, or remove gates: such changes are noted. A
 * text that cannot be read counts as unchanged.
 */
export function kptfileChanges(before: string, after: string): KptfileChanges {
  if (before === after) return NOTHING;
  const [was, is] = [readKptfile(before), readKptfile(after)];
  if (!was.ok || !is.ok) return NOTHING;
  const notes: string[] = [];
  const edits = editsBetween(was.kptfile, is.kptfile).filter((edit) => {
    // The pipeline resets them; this does not depend on how the function wrote them.
    if (
      (edit.op === 'setAnnotation' || edit.op === 'removeAnnotation') &&
      KPTFILE_REQUEST_ANNOTATIONS.includes(edit.key)
    ) {
      notes.push(requestIgnored('Kptfile', [edit.key]));
      return false;
    }
    const { success, error } = kptfileEditSchema.safeParse(edit);
    if (!success) notes.push(`Kptfile: a change by a function is ignored: ${error.issues[0]?.message ?? edit.op}`);
    return success;
  });
  const left = leftOut(was.kptfile, is.kptfile);
  if (left.length > 0)
    notes.push(`Kptfile: what functions changed in ${left.join(', ')} is ignored; only users may change it`);
  const gates = gatesOf(is.kptfile);
  for (const gate of gatesOf(was.kptfile))
    if (!gates.includes(gate)) notes.push(`Kptfile: a function removed the readiness gate ${gate}; it stays`);
  return {
    edits,
    ...conditionChanges(was.kptfile, is.kptfile),
    gates: missingFrom(gatesOf(was.kptfile), gates),
    notes,
  };
}

function editsBetween(was: Kptfile, is: Kptfile): KptfileEdit[] {
  const edits: KptfileEdit[] = [];
  const name = is.metadata?.name;
  if (name !== undefined && name !== was.metadata?.name) edits.push({ op: 'setName', name });
  const [labels, annotations] = [mapChange(was, is, 'labels'), mapChange(was, is, 'annotations')];
  for (const [key, value] of labels)
    edits.push(value === undefined ? { op: 'removeLabel', key } : { op: 'setLabel', key, value });
  for (const [key, value] of annotations)
    edits.push(value === undefined ? { op: 'removeAnnotation', key } : { op: 'setAnnotation', key, value });
  for (const field of INFO_TEXTS)
    if (was.info?.[field] !== is.info?.[field]) edits.push({ op: 'setInfo', field, value: is.info?.[field] });
  for (const field of INFO_LISTS)
    if (!sameValue(was.info?.[field], is.info?.[field])) edits.push({ op: 'setInfo', field, value: is.info?.[field] });
  return edits;
}

/** Keys whose values differ; undefined where the key was removed. */
function mapChange(was: Kptfile, is: Kptfile, field: 'labels' | 'annotations'): [string, string | undefined][] {
  const before = new Map(Object.entries(was.metadata?.[field] ?? {}));
  const after = new Map(Object.entries(is.metadata?.[field] ?? {}));
  const keys = [...new Set([...before.keys(), ...after.keys()])].sort();
  return keys.filter((key) => before.get(key) !== after.get(key)).map((key) => [key, after.get(key)]);
}

function conditionChanges(was: Kptfile, is: Kptfile): Pick<KptfileChanges, 'conditions' | 'withdraw'> {
  const [before, after] = [conditionsOf(was), conditionsOf(is)];
  // Functions run before the result of rendering is known.
  for (const conditions of [before, after]) conditions.delete(RENDERED.type);
  return {
    conditions: [...after.values()].filter((condition) => !sameValue(condition, before.get(condition.type))),
    withdraw: missingFrom([...after.keys()], [...before.keys()]),
  };
}

/** Returns changed fields for which no edit exists. */
function leftOut(was: Kptfile, is: Kptfile): string[] {
  const [before, after] = [otherFields(was), otherFields(is)];
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => !sameValue(before.get(field), after.get(field)),
  );
}

function otherFields({ metadata = {}, info = {}, status = {}, ...rest }: Kptfile): Map<string, unknown> {
  const { name: _name, labels: _labels, annotations: _annotations, ...otherMetadata } = metadata;
  const { readinessGates: _gates, ...otherInfo } = info;
  for (const field of [...INFO_TEXTS, ...INFO_LISTS]) delete otherInfo[field];
  // The result of rendering is written by every render.
  const { conditions: _conditions, renderStatus: _renderStatus, ...otherStatus } = status;
  const inner = { metadata: otherMetadata, info: otherInfo, status: otherStatus };
  return new Map([
    ...Object.entries(rest),
    ...Object.entries(inner).flatMap(([outer, fields]) =>
      Object.entries(fields).map(([field, value]): [string, unknown] => [`${outer}.${field}`, value]),
    ),
  ]);
}

function missingFrom(present: readonly string[], wanted: readonly string[]): string[] {
  return wanted.filter((each) => !present.includes(each));
}
