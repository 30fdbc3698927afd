import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import { compileExpression } from './compile/expressions.ts';
import { compileBlock } from './compile/statements.ts';
import type { Unit } from './compile/unit.ts';
import { COLLECTION_FUNCTIONS } from './library/collection-functions.ts';
import { CONVERSION_FUNCTIONS } from './library/conversion-functions.ts';
import { DEFAULT_STARLARK_LIMITS, Machine, type StarlarkLimits } from './machine/machine.ts';
import { columnOf, lineOf, type Position } from './machine/position.ts';
import { EvaluationError, type StarlarkErrorDetails } from './machine/starlark-error.ts';
import { parseScript } from './syntax/parser.ts';
import { resolve } from './syntax/resolver.ts';
import { ScriptSyntaxError } from './syntax/syntax-error.ts';
import { Builtin } from './values/callable.ts';
import { Frame } from './values/frame.ts';
import type { Value } from './values/value.ts';

/** The names that every script knows. */
const UNIVERSE: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['None', null],
  ['True', true],
  ['False', false],
  ...Object.entries({ ...COLLECTION_FUNCTIONS, ...CONVERSION_FUNCTIONS }).map(([name, call]): [string, Value] => [
    name,
    new Builtin(name, call),
  ]),
]);

export interface StarlarkOptions {
  /** Name of the script, for messages. */
  readonly name: string;
  /** The predeclared names beside those of the language. Values that it creates count as the script's. */
  readonly predeclare?: (machine: Machine) => ReadonlyMap<string, Value>;
  /** Reads the result of the script, within its limits. */
  readonly collect?: (machine: Machine) => void;
  /** The members of a module that the script loads; undefined if there is none of that name. */
  readonly load?: (module: string) => ReadonlyMap<string, Value> | undefined;
  /** Called with each line that the script prints. */
  readonly print?: (text: string) => void;
  readonly limits?: Partial<StarlarkLimits>;
}

/**
 * Runs a script: Starlark according to its specification, with sets, recursion, `while`, and control flow and reassignment outside
 * of functions. A script cannot access the host except through these options. Returns its global variables.
 *
 * Throws InvalidInput for an error of the script, and LimitExceeded when it is stopped at a limit; both with
 * `StarlarkErrorDetails`.
 */
export function runStarlark(script: string, options: StarlarkOptions): ReadonlyMap<string, Value> {
  const { name, predeclare, collect, load = () => undefined, print = () => {} } = options;
  const limits = { ...DEFAULT_STARLARK_LIMITS, ...options.limits };
  const machine = new Machine(limits, print);
  try {
    if (script.length > limits.sourceLength)
      throw new ScriptSyntaxError(0, `the script is longer than ${limits.sourceLength} characters`);
    const statements = parseScript(script);
    const predeclared = predeclare?.(machine) ?? [];
    const { scope, globals: names } = resolve(statements, new Map([...UNIVERSE, ...predeclared]));
    const globals: (Value | undefined)[] = new Array(names.length).fill(undefined);
    const unit: Unit = {
      ...{ machine, globals, load, parts: 0 },
      expression: (expression) => compileExpression(expression, unit),
      block: (inner) => compileBlock(inner, unit),
    };
    const run = compileBlock(statements, unit);
    const slots = scope.locals.map(({ shared }) => (shared ? { value: undefined } : undefined));
    run(new Frame(slots, []));
    machine.position = 0;
    collect?.(machine);
    return new Map(names.flatMap((global, at) => (globals[at] === undefined ? [] : [[global, globals[at]]])));
  } catch (error) {
    throw placed(name, error, machine);
  }
}

/** The error with its place. Other errors are returned as they are. */
function placed(name: string, error: unknown, machine: Machine): unknown {
  if (error instanceof ScriptSyntaxError)
    return starlarkError('InvalidInput', name, error, { phase: 'syntax', position: error.position, backtrace: '' });
  const { position } = machine;
  const backtrace = backtraceOf(name, machine);
  if (error instanceof EvaluationError)
    return starlarkError('InvalidInput', name, error, { phase: 'evaluation', position, backtrace });
  if (isSluiceError(error, 'LimitExceeded'))
    return starlarkError('LimitExceeded', name, error, { phase: 'limit', position, backtrace });
  // The stack of the engine, which calls and nested expressions of the script use.
  if (error instanceof RangeError && /call stack/.test(error.message)) {
    const stopped = new Error('the script was stopped: its calls are nested too deep');
    return starlarkError('LimitExceeded', name, stopped, { phase: 'limit', position, backtrace });
  }
  return error;
}

function starlarkError(
  code: 'InvalidInput' | 'LimitExceeded',
  name: string,
  { message: reason }: Error,
  { phase, position, backtrace }: Pick<StarlarkErrorDetails, 'phase' | 'backtrace'> & { position: Position },
): SluiceError<StarlarkErrorDetails> {
  const [line, column] = [lineOf(position), columnOf(position)];
  const place = position === 0 ? name : `${name}:${line}:${column}`;
  return new SluiceError(code, `${place}: ${reason}`, { details: { phase, reason, line, column, backtrace } });
}

/** Lines of the backtrace; the middle of a long one is omitted. */
const SHOWN_CALLS = 40;

function backtraceOf(name: string, { calls, position }: Machine): string {
  const lines: string[] = [];
  for (let at = 0; at <= calls.length; at++) {
    const where = calls[at]?.position ?? position;
    if (calls[at - 1]?.builtIn === true) continue;
    const caller = calls[at - 1]?.name ?? '<toplevel>';
    if (at < SHOWN_CALLS / 2 || at > calls.length - SHOWN_CALLS / 2)
      lines.push(`  ${name}:${lineOf(where)}:${columnOf(where)}: in ${caller}`);
    else if (at === SHOWN_CALLS / 2) lines.push(`  … ${calls.length + 1 - SHOWN_CALLS} more calls`);
  }
  return `Traceback (most recent call last):\n${lines.join('\n')}`;
}
