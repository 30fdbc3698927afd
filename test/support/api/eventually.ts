/** Waits until something holds that the server does in its own time, which has no bound below `limitMs`. */
export async function eventually<Value>(
  ask: () => Promise<Value>,
  holds: (value: Value) => boolean,
  limitMs = 30_000,
): Promise<Value> {
  const end = Date.now() + limitMs;
  for (;;) {
    const value = await ask();
    if (holds(value)) return value;
    if (Date.now() > end) throw new Error(`it did not come to pass: ${String(JSON.stringify(value)).slice(0, 2000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
