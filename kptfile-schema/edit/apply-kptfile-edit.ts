import { type KptfileEdit, KptfileEditError } from '../model/kptfile-edit.ts';
import type { Condition, KptFunction, Kptfile, KptfileCondition } from '../model/kptfile-schema.ts';

/**
 * What an edit means, on the model: editKptfile does the same to a text. Pure; parts that do not change are the
 * same objects in the result. A list or mapping that the edit empties is removed together with its key, and so
 * are the parents that this empties (`status`, `info`, `pipeline`, `metadata`).
 * Throws KptfileEditError NotFound if there is no function at the index.
 */
export function applyKptfileEdit(kptfile: Kptfile, edit: KptfileEdit): Kptfile {
  switch (edit.op) {
    case 'setCondition':
      return withField(kptfile, 'status', (status) =>
        withField(status ?? {}, 'conditions', (conditions) => withCondition(conditions ?? [], edit.condition)),
      );
    case 'removeCondition':
      return withField(kptfile, 'status', (status) =>
        withField(status, 'conditions', (conditions) => without(conditions, ({ type }) => type === edit.type)),
      );
    case 'addGate': {
      const { conditionType } = edit;
      if (kptfile.info?.readinessGates?.some((gate) => gate.conditionType === conditionType)) return kptfile;
      return withField(kptfile, 'info', (info) => ({
        ...info,
        readinessGates: [...(info?.readinessGates ?? []), { conditionType }],
      }));
    }
    case 'removeGate':
      return withField(kptfile, 'info', (info) =>
        withField(info, 'readinessGates', (gates) =>
          without(gates, ({ conditionType }) => conditionType === edit.conditionType),
        ),
      );
    case 'setLabel':
    case 'removeLabel':
      return withMetadata(kptfile, 'labels', edit.key, edit.op === 'setLabel' ? edit.value : undefined);
    case 'setAnnotation':
    case 'removeAnnotation':
      return withMetadata(kptfile, 'annotations', edit.key, edit.op === 'setAnnotation' ? edit.value : undefined);
    case 'setName':
      return withField(kptfile, 'metadata', (metadata) => withField(metadata ?? {}, 'name', () => edit.name));
    case 'setInfo':
      return withField(kptfile, 'info', (info) =>
        isListEdit(edit)
          ? withField(info ?? {}, edit.field, (before) => sameOr(before, edit.value))
          : withField(info ?? {}, edit.field, () => edit.value),
      );
    case 'setUpstream':
      return withField(kptfile, 'upstream', () => plain(edit.upstream));
    case 'setUpstreamLock':
      return withField(kptfile, 'upstreamLock', () => plain(edit.upstreamLock));
    case 'addFunction':
      return withField(kptfile, 'pipeline', (pipeline) =>
        withField(pipeline ?? {}, edit.list, (list) => inserted(list ?? [], edit)),
      );
    case 'removeFunction':
      return withField(kptfile, 'pipeline', (pipeline) =>
        withField(pipeline, edit.list, (list) => {
          if (list?.[edit.index] === undefined) throw noFunction(edit.list, edit.index, list?.length ?? 0);
          return list.filter((_, index) => index !== edit.index);
        }),
      );
    case 'setRenderStatus':
      return withField(kptfile, 'status', (status) =>
        withField(status ?? {}, 'renderStatus', () => plain(edit.renderStatus)),
      );
  }
}

/**
 * The parent with one field changed; the parent itself if nothing changes. An empty mapping or list is never
 * written: a field that becomes empty is left out.
 */
function withField<Parent extends object, Name extends keyof Parent>(
  parent: Parent,
  name: Name,
  change: (before: Parent[Name] | undefined) => Parent[Name] | undefined,
): Parent;
function withField<Parent extends object, Name extends keyof Parent>(
  parent: Parent | undefined,
  name: Name,
  change: (before: Parent[Name] | undefined) => Parent[Name] | undefined,
): Parent | undefined;
function withField<Parent extends object, Name extends keyof Parent>(
  parent: Parent | undefined,
  name: Name,
  change: (before: Parent[Name] | undefined) => Parent[Name] | undefined,
): Parent | undefined {
  const before = parent?.[name];
  const after = change(before);
  if (after === before || (isEmpty(after) && (before === undefined || isEmpty(before)))) return parent;
  if (after !== undefined && !isEmpty(after)) return { ...(parent as Parent), [name]: after };
  const { [name]: _removed, ...rest } = parent as Parent;
  return rest as Parent;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function withMetadata(
  kptfile: Kptfile,
  field: 'labels' | 'annotations',
  key: string,
  value: string | undefined,
): Kptfile {
  return withField(kptfile, 'metadata', (metadata) =>
    withField(value === undefined ? metadata : (metadata ?? {}), field, (map) => {
      if (value === undefined) return map === undefined ? map : withField(map, key, () => undefined);
      return withField(map ?? {}, key, () => value);
    }),
  );
}

function withCondition(conditions: readonly KptfileCondition[], condition: Condition): KptfileCondition[] {
  const result: KptfileCondition[] = [];
  let placed = false;
  for (const existing of conditions) {
    if (existing.type !== condition.type) {
      result.push(existing);
    } else if (!placed) {
      placed = true;
      result.push(replaced(existing, condition));
    }
  }
  if (!placed) result.push(plain({ ...condition }));
  return sameItems(conditions, result) ? (conditions as KptfileCondition[]) : result;
}

function replaced(existing: KptfileCondition, condition: Condition): KptfileCondition {
  const { type, status, reason, message } = condition;
  const same =
    existing.type === type && existing.status === status && existing.reason === reason && existing.message === message;
  if (same) return existing;
  const { type: _type, status: _status, reason: _reason, message: _message, ...unknown } = existing;
  return { ...unknown, ...plain({ ...condition }) };
}

type InfoEdit = Extract<KptfileEdit, { op: 'setInfo' }>;

function isListEdit(edit: InfoEdit): edit is Extract<InfoEdit, { field: 'emails' | 'keywords' }> {
  return edit.field === 'emails' || edit.field === 'keywords';
}

function sameOr(before: string[] | undefined, after: readonly string[] | undefined): string[] | undefined {
  if (before !== undefined && after !== undefined && sameItems(before, after)) return before;
  return after === undefined ? undefined : [...after];
}

function sameItems(before: readonly unknown[], after: readonly unknown[]): boolean {
  return before.length === after.length && before.every((item, index) => item === after[index]);
}

function without<Item>(list: Item[] | undefined, drop: (item: Item) => boolean): Item[] | undefined {
  return list?.some(drop) ? list.filter((item) => !drop(item)) : list;
}

function inserted(list: readonly KptFunction[], edit: Extract<KptfileEdit, { op: 'addFunction' }>): KptFunction[] {
  const index = edit.index ?? list.length;
  if (index > list.length) throw noFunction(edit.list, index, list.length);
  return [...list.slice(0, index), plain(edit.function), ...list.slice(index)];
}

function noFunction(list: string, index: number, length: number): KptfileEditError {
  return new KptfileEditError('NotFound', `pipeline.${list}[${index}] does not exist: the list has ${length} entries.`);
}

/** A copy without undefined fields, which a file cannot hold. */
function plain<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(plain) as Value;
  if (typeof value !== 'object' || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) if (field !== undefined) result[name] = plain(field);
  return result as Value;
}
