import { fail } from '../machine.ts';
import { Struct } from '../values/struct.ts';

/** A module that a script may load and must not use. */
export class UnavailableModule extends Struct {
  private readonly why: string;

  constructor(name: string, why = 'it is not part of Sluice; an external starlark function has it') {
    super(new Map(), { type: 'module', name });
    this.why = why;
  }

  override attribute(): never {
    return fail(`${this.name} cannot be used here: ${this.why}`);
  }
}
