import { Json } from "../../ui/Json";
import type { RecipeDocument } from "./plan";

/** What it takes and what it gives, as they are written. */
export default function SchemaView({ recipe }: { readonly recipe: RecipeDocument }) {
  return (
    <div className="flex flex-col gap-3 p-4">
      <h2 className="font-semibold">Schema of the inputs</h2>
      <Json value={recipe.inputs_schema} label="Schema of the inputs" />
      <h2 className="font-semibold">Output</h2>
      <Json value={recipe.output} label="Output" />
    </div>
  );
}
