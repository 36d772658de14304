/** The typed inputs of a job. */
export interface Parsed {
  readonly value?: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

export function parsedInputs(text: string): Parsed {
  if (text.trim() === "") return { value: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return { value: value as Record<string, unknown> };
    }
    return { error: 'The inputs are one JSON object, such as {"topic": "sea"}' };
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : error}` };
  }
}

/** Any JSON; text that is not JSON is refused rather than guessed. */
export function parsedJson(text: string): { readonly value?: unknown; readonly error?: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : error}` };
  }
}
