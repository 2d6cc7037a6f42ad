//! Types that give the schema of a parameter where utoipa requires a type: a parameter whose schema
//! comes from a function would lose its description.

use crate::view::words;

/// Defines a type for a schema.
macro_rules! form {
    ($name:ident = $schema:expr) => {
        pub(crate) struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use form;

form!(Class = words::class());
form!(ContentionKind = words::contention_kind());
form!(Duration = words::duration());
form!(Filled = words::filled());
form!(ItemKind = words::item_kind());
form!(Lock = words::lock());
form!(Moment = words::moment());
form!(PeriodOrDay = words::period_or_day());
form!(ReceiptStatus = words::receipt_status());
form!(RecordKind = words::record_kind());
form!(RecordStatus = words::record_status());
form!(RunStatus = words::run_status());
form!(TouchAccess = words::touch_access());
