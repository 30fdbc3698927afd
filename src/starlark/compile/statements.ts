import { fail } from '../machine/machine.ts';
import type { Statement } from '../syntax/tree.ts';
import { BREAK, CONTINUE, type Ending, type Execute, NEXT, RETURN } from '../values/frame.ts';
import { truth } from '../values/value.ts';
import { compileAugment, compileTarget } from './assignment.ts';
import { compileExpression } from './expressions.ts';
import { compileFunction } from './functions.ts';
import { loop } from './loop.ts';
import type { Unit } from './unit.ts';

/** Compiles the statements of a block to one function, which ends at the first statement that does not end with `NEXT`. */
export function compileBlock(statements: readonly Statement[], unit: Unit): Execute {
  const { machine } = unit;
  const steps = statements.map((statement) => {
    const before = unit.parts;
    const run = compileStatement(statement, unit);
    const cost = unit.parts - before + 1;
    unit.parts = before;
    const { position } = statement;
    const execute: Execute = (frame) => {
      machine.position = position;
      machine.step(cost);
      return run(frame);
    };
    return execute;
  });
  const [only] = steps;
  if (only !== undefined && steps.length === 1) return only;
  return (frame) => {
    for (let at = 0; at < steps.length; at++) {
      const ending = (steps[at] as Execute)(frame);
      if (ending !== NEXT) return ending;
    }
    return NEXT;
  };
}

/** Nested blocks count their own steps; `parts` grows by the expressions of the statement itself. */
function compileStatement(statement: Statement, unit: Unit): Execute {
  const { machine } = unit;
  switch (statement.kind) {
    case 'expression': {
      const value = compileExpression(statement.value, unit);
      return (frame) => {
        value(frame);
        return NEXT;
      };
    }
    case 'assign': {
      const value = compileExpression(statement.value, unit);
      const assign = compileTarget(statement.target, unit);
      return (frame) => {
        assign(frame, value(frame));
        return NEXT;
      };
    }
    case 'augment':
      return compileAugment(statement, unit);
    case 'if': {
      const branches = statement.branches.map(({ condition, body }) => ({
        condition: compileExpression(condition, unit),
        body: compileBlock(body, unit),
      }));
      const otherwise = compileBlock(statement.otherwise, unit);
      return (frame) => {
        for (const { condition, body } of branches) if (truth(condition(frame))) return body(frame);
        return otherwise(frame);
      };
    }
    case 'for': {
      const source = compileExpression(statement.value, unit);
      const assign = compileTarget(statement.target, unit);
      const body = compileBlock(statement.body, unit);
      const { position } = statement;
      return (frame) => {
        const value = source(frame);
        machine.position = position;
        let ending: Ending = NEXT;
        loop(machine, value, (item) => {
          machine.step(1);
          assign(frame, item);
          ending = body(frame);
          return ending === NEXT || ending === CONTINUE;
        });
        // The compiler does not see that the loop sets it.
        return (ending as Ending) === RETURN ? RETURN : NEXT;
      };
    }
    case 'while': {
      const before = unit.parts;
      const condition = compileExpression(statement.condition, unit);
      const cost = unit.parts - before + 1;
      const body = compileBlock(statement.body, unit);
      return (frame) => {
        while (truth(condition(frame))) {
          machine.step(cost);
          const ending = body(frame);
          if (ending === RETURN) return RETURN;
          if (ending === BREAK) break;
        }
        return NEXT;
      };
    }
    case 'return': {
      const value = statement.value === undefined ? undefined : compileExpression(statement.value, unit);
      return (frame) => {
        if (value !== undefined) frame.result = value(frame);
        return RETURN;
      };
    }
    case 'break':
      return () => BREAK;
    case 'continue':
      return () => CONTINUE;
    case 'pass':
      return () => NEXT;
    case 'def': {
      const make = compileFunction(statement.function, unit);
      const assign = compileTarget(statement.name, unit);
      return (frame) => {
        assign(frame, make(frame));
        return NEXT;
      };
    }
    case 'load': {
      const names = statement.names.map(({ local, exported }) => ({ exported, assign: compileTarget(local, unit) }));
      const { module, position } = statement;
      return (frame) => {
        machine.position = position;
        const members = unit.load(module);
        if (members === undefined) fail(`cannot load ${module}: unknown module`);
        for (const { exported, assign } of names) {
          const value = members.get(exported);
          if (value === undefined) fail(`load: name ${exported} not found in module ${module}`);
          assign(frame, value);
        }
        return NEXT;
      };
    }
  }
}
