/** A number with its noun: `1 repository`, `2 repositories`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
