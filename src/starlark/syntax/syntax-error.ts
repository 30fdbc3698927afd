import type { Position } from '../machine/position.ts';

/** A syntax error of a script. `runStarlark` converts it to a SluiceError. */
export class ScriptSyntaxError extends Error {
  readonly position: Position;

  constructor(position: Position, message: string) {
    super(message);
    this.position = position;
  }
}
