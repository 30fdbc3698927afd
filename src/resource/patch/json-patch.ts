import { SluiceError } from '../../foundation/sluice-error.ts';
import { isJsonObject, setOwnValue } from '../object/own-property.ts';
import { sameValue } from '../object/same-value.ts';

/** As many operations as kube-apiserver takes. */
const MAX_OPERATIONS = 10_000;
/** Maximum total size of values that the copy operations of one patch copy, in characters of JSON. */
const MAX_COPIED_CHARACTERS = 6 * 1024 * 1024;
/** Levels of nesting, as many as a body may have: a value that is put into itself again and again would have any number. */
const MAX_DEPTH = 100;
/** Maximum number of values that one patch adds, including nested ones. */
const MAX_VALUES = 1_000_000;

type Container = unknown[] | Record<string, unknown>;

interface Operation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: Pointer;
  /** Of move and copy. */
  readonly from: Pointer;
  /** Of add, replace and test. */
  readonly value: unknown;
}

interface Pointer {
  readonly text: string;
  readonly keys: readonly string[];
}

/**
 * Applies a JSON patch (RFC 6902) and returns a new value; neither argument is changed. All operations or none: the first
 * that fails is an InvalidInput that names it. A patch that is no JSON patch is a BadRequest, one that is too large
 * or makes the value too large is a LimitExceeded.
 *
 * As in kube-apiserver, and unlike in the RFC, `replace` adds a field that an object does not have, and such a field equals null for `test`.
 */
export function applyJsonPatch(target: unknown, patch: unknown): unknown {
  const operations = readPatch(patch);
  const draft = new Draft(target);
  for (const [index, operation] of operations.entries()) {
    try {
      draft.apply(operation);
    } catch (error) {
      if (!(error instanceof CannotApply)) throw error;
      throw new SluiceError(
        'InvalidInput',
        `the JSON patch cannot be applied: operation ${index} (${operation.op} ${JSON.stringify(shorten(operation.path.text))}): ${error.message}`,
      );
    }
  }
  return draft.root;
}

/** The reason why one operation cannot be applied to the value. */
class CannotApply extends Error {}

/** The value while it is patched. Containers of the original are copied before the first change to them, once. */
class Draft {
  root: unknown;
  readonly #own = new WeakSet<object>();
  #copied = 0;
  #placed = 0;

  constructor(target: unknown) {
    this.root = target;
  }

  apply(operation: Operation): void {
    const { path, from } = operation;
    switch (operation.op) {
      case 'add':
        this.#add(path, operation.value);
        break;
      case 'remove':
        this.#remove(path);
        break;
      case 'replace':
        this.#replace(path, operation.value);
        break;
      case 'test':
        // The patch's value first: the comparison's cost is then bounded by the patch, for the first difference ends it.
        if (!sameValue(operation.value, this.#readOptional(path))) throw new CannotApply('the value is another');
        break;
      case 'copy':
        this.#add(path, this.#copy(this.#read(from)));
        break;
      case 'move':
        if (startsWith(path, from)) throw new CannotApply('a value cannot be moved into itself');
        this.#add(path, this.#remove(from));
        break;
    }
  }

  #read(pointer: Pointer): unknown {
    let value = this.root;
    for (let depth = 0; depth < pointer.keys.length; depth += 1) value = childOf(value, pointer, depth);
    return value;
  }

  /** The same, but null for a field that the last object on the way does not have. */
  #readOptional(pointer: Pointer): unknown {
    const last = pointer.keys.at(-1);
    if (last === undefined) return this.root;
    const parent = this.#read({ ...pointer, keys: pointer.keys.slice(0, -1) });
    if (isJsonObject(parent) && !Object.hasOwn(parent, last)) return null;
    return childOf(parent, pointer, pointer.keys.length - 1);
  }

  #add(pointer: Pointer, value: unknown): void {
    this.#checkDepth(value, pointer.keys.length);
    const last = pointer.keys.at(-1);
    if (last === undefined) {
      this.root = value;
      return;
    }
    const parent = this.#writableParent(pointer);
    if (!Array.isArray(parent)) setOwnValue(parent, last, value);
    else parent.splice(last === '-' ? parent.length : indexOf(last, parent.length), 0, value);
  }

  #remove(pointer: Pointer): unknown {
    const last = pointer.keys.at(-1);
    if (last === undefined) throw new CannotApply('the whole value cannot be removed');
    const removed = this.#read(pointer);
    const parent = this.#writableParent(pointer);
    if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
    return removed;
  }

  #replace(pointer: Pointer, value: unknown): void {
    this.#checkDepth(value, pointer.keys.length);
    const last = pointer.keys.at(-1);
    if (last === undefined) {
      this.root = value;
      return;
    }
    this.#readOptional(pointer);
    const parent = this.#writableParent(pointer);
    if (Array.isArray(parent)) parent[Number(last)] = value;
    else setOwnValue(parent, last, value);
  }

  #checkDepth(value: unknown, depth: number): void {
    if (typeof value !== 'object' || value === null) return;
    const inner = Object.values(value);
    this.#placed += inner.length;
    if (depth >= MAX_DEPTH || this.#placed > MAX_VALUES)
      throw new SluiceError(
        'LimitExceeded',
        `a JSON patch may place ${MAX_VALUES} values and nest them ${MAX_DEPTH} levels deep`,
      );
    for (const one of inner) this.#checkDepth(one, depth + 1);
  }

  /** Returns the container of the pointer's target, after copying it and its parents into this draft. */
  #writableParent(pointer: Pointer): Container {
    let parent = this.#writable(this.root, pointer, 0);
    this.root = parent;
    for (let depth = 0; depth < pointer.keys.length - 1; depth += 1) {
      const child = this.#writable(childOf(parent, pointer, depth), pointer, depth + 1);
      const key = pointer.keys[depth] as string;
      if (Array.isArray(parent)) parent[Number(key)] = child;
      else setOwnValue(parent, key, child);
      parent = child;
    }
    return parent;
  }

  #writable(value: unknown, pointer: Pointer, depth: number): Container {
    if (typeof value !== 'object' || value === null) throw notContainer(pointer, depth);
    if (this.#own.has(value)) return value as Container;
    const copy: Container = Array.isArray(value) ? [...value] : { ...value };
    this.#own.add(copy);
    return copy;
  }

  /** Copies a value deeply, so that a later operation on one place does not affect the other. */
  #copy(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const text = JSON.stringify(value);
    this.#copied += text.length;
    if (this.#copied > MAX_COPIED_CHARACTERS)
      throw new SluiceError(
        'LimitExceeded',
        `the copy operations of a JSON patch may copy ${MAX_COPIED_CHARACTERS} bytes`,
      );
    return JSON.parse(text);
  }
}

/** The value one step down the pointer, which must be there. */
function childOf(value: unknown, pointer: Pointer, depth: number): unknown {
  const key = pointer.keys[depth] as string;
  if (Array.isArray(value)) return value[indexOf(key, value.length - 1)];
  if (!isJsonObject(value)) throw notContainer(pointer, depth);
  if (!Object.hasOwn(value, key)) throw new CannotApply(`there is no ${shownStart(pointer, depth + 1)}`);
  return value[key];
}

function indexOf(key: string, largest: number): number {
  if (!/^(?:0|[1-9]\d{0,9})$/.test(key)) throw new CannotApply(`${shorten(key)} is not an index of a list`);
  const index = Number(key);
  if (index > largest) throw new CannotApply(`the list has no index ${index}`);
  return index;
}

function notContainer(pointer: Pointer, depth: number): CannotApply {
  return new CannotApply(`${shownStart(pointer, depth)} has no fields`);
}

/** Formats the first `length` steps of a pointer for messages. */
function shownStart(pointer: Pointer, length: number): string {
  if (length === 0) return 'the value';
  return JSON.stringify(shorten(pointer.text.split('/', length + 1).join('/')));
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function startsWith(inner: Pointer, outer: Pointer): boolean {
  return inner.keys.length > outer.keys.length && outer.keys.every((key, depth) => key === inner.keys[depth]);
}

function readPatch(patch: unknown): Operation[] {
  if (!Array.isArray(patch)) throw notAPatch('it must be a list of operations');
  if (patch.length > MAX_OPERATIONS)
    throw new SluiceError(
      'LimitExceeded',
      `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`,
    );
  return patch.map(readOperation);
}

function readOperation(value: unknown, index: number): Operation {
  if (!isJsonObject(value)) throw notAPatch(`operation ${index} must be an object`);
  const { op } = value;
  const takes = (field: 'value' | 'from') => {
    if (!Object.hasOwn(value, field)) throw notAPatch(`operation ${index} (${String(op)}) needs "${field}"`);
    return value[field];
  };
  const path = readPointer(value.path, index, 'path');
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      return { op, path, from: path, value: takes('value') };
    case 'remove':
      return { op, path, from: path, value: undefined };
    case 'move':
    case 'copy':
      return { op, path, from: readPointer(takes('from'), index, 'from'), value: undefined };
    default:
      throw notAPatch(`operation ${index} has no known "op": add, remove, replace, move, copy or test`);
  }
}

/** A JSON pointer (RFC 6901). */
function readPointer(text: unknown, index: number, field: string): Pointer {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')) || /~(?![01])/.test(text))
    throw notAPatch(`"${field}" of operation ${index} must be a JSON pointer, such as /metadata/labels`);
  const keys = text.split('/').slice(1);
  return {
    text,
    keys: text.includes('~') ? keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~')) : keys,
  };
}

function notAPatch(reason: string): SluiceError {
  return new SluiceError('BadRequest', `this is not a JSON patch: ${reason}`);
}
