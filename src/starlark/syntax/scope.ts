import type { Value } from '../values/value.ts';

/** The binding of a name. */
export type Binding =
  /** A variable of the function; `shared` if a function inside uses it too, so that its slot holds a cell. */
  | { readonly scope: 'local'; readonly name: string; readonly slot: number; shared: boolean }
  /** A variable of an enclosing function: the place of its cell among the free variables. */
  | { readonly scope: 'free'; readonly name: string; readonly at: number }
  | { readonly scope: 'global'; readonly name: string; readonly slot: number }
  | { readonly scope: 'constant'; readonly name: string; readonly value: Value };

type Local = Extract<Binding, { scope: 'local' }>;

/** The variables of one function, or of the script itself, whose only locals are those of comprehensions. */
export class FunctionScope {
  readonly parent: FunctionScope | undefined;
  /**
   * The local variables in the order of their slots. Comprehensions have separate variables, so a name may occur more
   * than once.
   */
  readonly locals: Local[] = [];
  /** The variable of the enclosing function for each free one: one of its locals, or one of its own free ones. */
  readonly free: Binding[] = [];
  private readonly freeByName = new Map<string, Binding>();
  /** Innermost last: the variables of the function, then those of the enclosing comprehensions. */
  private readonly blocks: Map<string, Local>[] = [new Map()];

  constructor(parent: FunctionScope | undefined) {
    this.parent = parent;
  }

  /** True for the script itself outside of comprehensions, where names are global. */
  get isGlobal(): boolean {
    return this.parent === undefined && this.blocks.length === 1;
  }

  openBlock(): void {
    this.blocks.push(new Map());
  }

  closeBlock(): void {
    this.blocks.pop();
  }

  /** The variable of the name in the innermost block, created if it is new. */
  declare(name: string): Local {
    const block = this.blocks.at(-1) as Map<string, Local>;
    let local = block.get(name);
    if (local === undefined) {
      local = { scope: 'local', name, slot: this.locals.length, shared: false };
      block.set(name, local);
      this.locals.push(local);
    }
    return local;
  }

  /**
   * Returns the binding of a name in this scope, or undefined if it is not a variable of this or an enclosing function.
   */
  lookup(name: string): Local | Binding | undefined {
    for (let at = this.blocks.length - 1; at >= 0; at--) {
      const local = this.blocks[at]?.get(name);
      if (local !== undefined) return local;
    }
    const known = this.freeByName.get(name);
    if (known !== undefined) return known;
    const outer = this.parent?.lookup(name);
    if (outer === undefined || outer.scope === 'global' || outer.scope === 'constant') return undefined;
    if (outer.scope === 'local') outer.shared = true;
    const binding: Binding = { scope: 'free', name, at: this.free.length };
    this.free.push(outer);
    this.freeByName.set(name, binding);
    return binding;
  }
}
