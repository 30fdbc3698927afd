import { fail } from '../../starlark/machine/machine.ts';
import { BASE64 } from '../../starlark/modules/base64.ts';
import { HASH } from '../../starlark/modules/hash.ts';
import { JSON_MODULE } from '../../starlark/modules/json.ts';
import { MATH } from '../../starlark/modules/math.ts';
import { RE } from '../../starlark/modules/re.ts';
import { Struct } from '../../starlark/values/struct.ts';
import type { Value } from '../../starlark/values/value.ts';
import { KRMFN } from './krmfn.ts';
import { YAML } from './yaml.ts';

/** A module that a script may load and must not use. */
class UnavailableModule extends Struct {
  private readonly reason: string;

  constructor(name: string, why = 'it is not part of Sluice; an external starlark function has it') {
    super(new Map(), { type: 'module', name });
    this.reason = why;
  }

  override attribute(): never {
    return fail(`${this.name} cannot be used here: ${this.reason}`);
  }
}

/** The names that scripts can load from modules of the published function: one each. */
const MODULES: ReadonlyMap<string, ReadonlyMap<string, Value>> = new Map([
  entry('encoding/base64.star', 'base64', BASE64),
  entry('encoding/json.star', 'json', JSON_MODULE),
  entry('encoding/yaml.star', 'yaml', YAML),
  entry('hash.star', 'hash', HASH),
  entry('krmfn.star', 'krmfn', KRMFN),
  entry('math.star', 'math', MATH),
  entry('re.star', 're', RE),
  // Scripts may load these, but not use them.
  unavailable('bsoup.star', 'bsoup'),
  unavailable('encoding/csv.star', 'csv'),
  unavailable('geo.star', 'geo'),
  unavailable('html.star', 'html'),
  unavailable('http.star', 'http', 'a package renders without the network'),
  unavailable('time.star', 'time', 'a package renders the same at any time'),
  unavailable('xlsx.star', 'xlsx'),
  unavailable('zipfile.star', 'ZipFile'),
]);

function entry(module: string, name: string, value: Value): [string, ReadonlyMap<string, Value>] {
  return [module, new Map([[name, value]])];
}

function unavailable(module: string, name: string, why?: string): [string, ReadonlyMap<string, Value>] {
  return entry(module, name, new UnavailableModule(name, why));
}

/** The members of a module; undefined if there is none of that name. */
export function loadModule(module: string): ReadonlyMap<string, Value> | undefined {
  return MODULES.get(module);
}
