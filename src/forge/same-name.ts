/** Hosts do not distinguish upper and lower case in names of users and teams. */
export function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** Whether a name is among others. */
export function isAmong(names: readonly string[], name: string): boolean {
  return names.some((one) => isSameName(one, name));
}
