import { fail, type Machine, TABLE } from '../machine/machine.ts';
import type { BinaryOperator } from '../syntax/tree.ts';
import { compare, equal } from '../values/compare.ts';
import { Float } from '../values/float.ts';
import { formatPercent } from '../values/format-percent.ts';
import { Dict, isHashable, StarlarkSet } from '../values/hash-table.ts';
import * as int from '../values/integer.ts';
import { elementsOf, newList, newTuple, repeat } from '../values/iterate.ts';
import { List, Range, Tuple } from '../values/sequence.ts';
import { isInt, typeName, type Value } from '../values/value.ts';

/** The result of a binary operator, except `and` and `or`. */
export function binary(machine: Machine, operator: BinaryOperator, a: Value, b: Value): Value {
  machine.step(1);
  switch (operator) {
    case '==':
      return equal(machine, a, b);
    case '!=':
      return !equal(machine, a, b);
    case '<':
      return compare(machine, a, b, operator) < 0;
    case '>':
      return compare(machine, a, b, operator) > 0;
    case '<=':
      return compare(machine, a, b, operator) <= 0;
    case '>=':
      return compare(machine, a, b, operator) >= 0;
    case 'in':
      return contains(machine, b, a);
    case 'not in':
      return !contains(machine, b, a);
    default:
  }
  const result = arithmetic(operator, a, b) ?? collection(machine, operator, a, b);
  return result === undefined ? fail(`unknown binary op: ${typeName(a)} ${operator} ${typeName(b)}`) : result;
}

function arithmetic(operator: BinaryOperator, a: Value, b: Value): Value | undefined {
  if (isInt(a) && isInt(b)) return INT_OPERATIONS[operator]?.(a, b);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x === undefined || y === undefined) return undefined;
  switch (operator) {
    case '+':
      return new Float(x + y);
    case '-':
      return new Float(x - y);
    case '*':
      return new Float(x * y);
    case '/':
      return divide(x, y);
    case '//':
      if (y === 0) fail('floored division by zero');
      return new Float(Math.floor(x / y));
    case '%': {
      if (y === 0) fail('floating-point modulo by zero');
      const rest = x % y;
      return new Float(rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest);
    }
    default:
      return undefined;
  }
}

const INT_OPERATIONS: Readonly<Partial<Record<BinaryOperator, (a: int.Int, b: int.Int) => Value>>> = {
  '+': int.add,
  '-': int.subtract,
  '*': int.multiply,
  '/': (a, b) => divide(floatOf(a), floatOf(b)),
  '//': int.floorDivide,
  '%': int.modulo,
  '&': int.bitAnd,
  '|': int.bitOr,
  '^': int.bitXor,
  '<<': int.shiftLeft,
  '>>': int.shiftRight,
};

function divide(a: number, b: number): Float {
  if (b === 0) fail('floating-point division by zero');
  return new Float(a / b);
}

function floatOf(value: int.Int): number {
  const float = Number(value);
  return Number.isFinite(float) ? float : fail('int too large to convert to float');
}

function numberOf(value: Value): number | undefined {
  if (value instanceof Float) return value.value;
  return isInt(value) ? floatOf(value) : undefined;
}

function collection(machine: Machine, operator: BinaryOperator, a: Value, b: Value): Value | undefined {
  switch (operator) {
    case '+':
      if (typeof a === 'string' && typeof b === 'string') return concatenate(machine, a, b);
      if (a instanceof List && b instanceof List) return newList(machine, joined(machine, a, b));
      if (a instanceof Tuple && b instanceof Tuple) return newTuple(machine, joined(machine, a, b));
      return undefined;
    case '*':
      if (isRepeatable(a) && isInt(b)) return repeat(machine, a, b);
      if (isInt(a) && isRepeatable(b)) return repeat(machine, b, a);
      return undefined;
    case '%':
      return typeof a === 'string' ? formatPercent(machine, a, b) : undefined;
    case '|':
      if (a instanceof Dict && b instanceof Dict) {
        machine.elements(a.size + b.size + TABLE);
        machine.step(a.size + b.size);
        const union = new Dict();
        for (const [key, value] of a.entries()) union.set(key, value);
        for (const [key, value] of b.entries()) union.set(key, value);
        return union;
      }
      return sets(machine, a, b, (x, y) => [...x.elements(), ...y.elements()]);
    case '&':
      return sets(machine, a, b, (x, y) => x.elements().filter((element) => y.has(element)));
    case '-':
      return sets(machine, a, b, (x, y) => x.elements().filter((element) => !y.has(element)));
    case '^':
      return sets(machine, a, b, (x, y) => [
        ...x.elements().filter((element) => !y.has(element)),
        ...y.elements().filter((element) => !x.has(element)),
      ]);
    default:
      return undefined;
  }
}

export function concatenate(machine: Machine, a: string, b: string): string {
  machine.text(a.length + b.length);
  return a + b;
}

function joined(machine: Machine, a: List | Tuple, b: List | Tuple): Value[] {
  machine.step((a.length + b.length) >> 4);
  return [...a.items, ...b.items];
}

function isRepeatable(value: Value): value is string | List | Tuple {
  return typeof value === 'string' || value instanceof List || value instanceof Tuple;
}

function sets(
  machine: Machine,
  a: Value,
  b: Value,
  combine: (a: StarlarkSet, b: StarlarkSet) => Value[],
): Value | undefined {
  if (!(a instanceof StarlarkSet && b instanceof StarlarkSet)) return undefined;
  machine.elements(a.size + b.size + TABLE);
  machine.step(a.size + b.size);
  return new StarlarkSet(combine(a, b));
}

function contains(machine: Machine, container: Value, element: Value): boolean {
  // Go's implementation accepts any value as the operand of a dict.
  if (container instanceof Dict) return isHashable(element) && container.has(element);
  if (container instanceof StarlarkSet) return container.has(element);
  if (container instanceof List || container instanceof Tuple)
    return container.items.some((item) => {
      machine.step(1);
      return equal(machine, item, element);
    });
  if (typeof container === 'string') {
    if (typeof element !== 'string') fail(`'in <string>' requires string as left operand, not ${typeName(element)}`);
    machine.step(container.length >> 4);
    return container.includes(element);
  }
  if (container instanceof Range) {
    if (element instanceof Float) return container.has(element.value);
    if (!isInt(element)) fail(`'in <range>' requires integer as left operand, not ${typeName(element)}`);
    return container.has(Number(element));
  }
  return fail(`unknown binary op: ${typeName(element)} in ${typeName(container)}`);
}

/** `a += b` and similar where `a` is changed in place; for all other types this is `a = a + b`. */
export function augmented(machine: Machine, operator: BinaryOperator, a: Value, b: Value): Value {
  const items = operator === '+' && a instanceof List ? elementsOf(machine, b) : undefined;
  if (items !== undefined && a instanceof List) {
    a.checkMutable('apply += to');
    machine.elements(items.length);
    // A list may be added to itself.
    for (let at = 0, count = items.length; at < count; at++) a.items.push(items[at] as Value);
    return a;
  }
  if (operator === '|' && a instanceof Dict && b instanceof Dict) {
    machine.elements(b.size);
    machine.step(b.size);
    for (const [key, value] of b.entries()) a.set(key, value);
    return a;
  }
  return binary(machine, operator, a, b);
}

export function unary(operator: '-' | '+' | '~', operand: Value): Value {
  if (isInt(operand)) {
    if (operator === '-') return int.negate(operand);
    return operator === '+' ? operand : int.subtract(-1, operand);
  }
  if (operand instanceof Float && operator !== '~') return operator === '+' ? operand : new Float(-operand.value);
  return fail(`unknown unary op: ${operator} ${typeName(operand)}`);
}
