import type { Position } from '../machine/position.ts';

/** What is wrong with the text of a script. Becomes a SluiceError at the border. */
export class ScriptSyntaxError extends Error {
  readonly position: Position;

  constructor(position: Position, message: string) {
    super(message);
    this.position = position;
  }
}
